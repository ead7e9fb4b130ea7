"""Readers: each turns one kind of file or folder into pairs, codes or labels."""
