"""Quality of the first page of results: queries as people type them, over 3,000 photographs judged by eye."""
