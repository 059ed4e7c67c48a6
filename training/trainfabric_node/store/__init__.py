"""Stores of immutable objects under a prefix: an S3 bucket, or a directory of a POSIX file system."""

from trainfabric_node.store.opening import open_store
from trainfabric_node.store.posix import PosixStore
from trainfabric_node.store.protocol import ObjectMissing, Store
from trainfabric_node.store.s3 import S3Store
from trainfabric_node.store.s3 import preload as preload_s3

__all__ = ["ObjectMissing", "PosixStore", "S3Store", "Store", "open_store", "preload_s3"]
