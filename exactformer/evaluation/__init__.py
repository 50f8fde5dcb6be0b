"""Values of texts, files and labelled rows, by the tables or by the transformer."""
