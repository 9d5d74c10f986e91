"""Evidence of shared work: populations, disguises and what is shown of them."""
