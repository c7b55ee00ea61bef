"""What commands show to people, as pages and lines of text."""
