"""What can be done to a phone, how phones are found and chosen."""
