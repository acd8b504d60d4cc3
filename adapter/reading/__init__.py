"""How calls are read, whatever the family: the source of text, the segmenter, and the bodies that formats share."""
