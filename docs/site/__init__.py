"""How the site is made: what MkDocs is given besides docs, and what is checked of the pages."""
