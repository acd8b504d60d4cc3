"""The shared readers of what stands between markers, one file each."""
