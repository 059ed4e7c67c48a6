"""The embedded AWS: moto as a server, the CloudFormation models that it lacks, and strict deploys.

A green deploy here proves that templates resolve, that references and order hold, and that every property fits its
CloudFormation schema; it does not prove that EC2 would accept them.
"""
