"""How far a piece of work travels through the files of the program."""
