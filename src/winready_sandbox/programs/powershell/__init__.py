"""PowerShell: a small honest interpreter of the language, with the cmdlets that containers and nodes get asked for."""
