"""Program texts to checked, typed graphs and back; facts about a module: its parameters, its space, its launches."""
