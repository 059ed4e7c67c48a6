"""The sandbox: an embedded AWS, an S3 server and local nodes, for the demo and for end-to-end tests.

Nothing of the product imports it, and it knows of the product what `trainfabric_plan` says.
"""
