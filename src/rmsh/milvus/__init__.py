"""The same library on a Milvus server."""
