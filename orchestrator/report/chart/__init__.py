"""Charts of the page: drawn by matplotlib, inlined as SVG that follows the page's colours."""
