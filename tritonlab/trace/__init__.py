"""The views of `tritonlab trace`: a page, and the steps of one program in the terminal."""
