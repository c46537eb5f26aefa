"""The law of the map: positions, runs, generations, and which offsets the stage holds. Pure."""
