import os

# Before aws_cdk is imported. The validator costs tens of seconds a stack, cfn-lint checks the same in tests/nag.
os.environ["CDK_VALIDATION"] = "false"
os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")
