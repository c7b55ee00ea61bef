"""Files as text: JSON and YAML with the place of every value, and writing them."""
