"""Run directory to JUnit, HTML, Markdown and JSON; needs no phone."""
