"""`tritonlab watch`: grades at every save and handles key presses."""
