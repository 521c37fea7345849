"""Small checks of single features of the support matrix, by area; several look at one pod."""
