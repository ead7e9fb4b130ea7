"""Tables, by subject; each is made from result files alone."""
