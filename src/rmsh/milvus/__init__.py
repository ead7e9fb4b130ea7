"""A library on a Milvus server; collection.py describes how it is stored there."""
