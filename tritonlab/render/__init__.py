"""Text, HTML and images of what the other rooms return. Nothing here decides anything."""
