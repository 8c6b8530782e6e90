"""What a newcomer types, and what is answered."""
