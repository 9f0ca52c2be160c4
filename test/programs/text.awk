# test/programs/text.awk - MIB (variable mib) of text that packs to about half: words of a few, and some noise, the same for the
# same seed (variable seed).
BEGIN {
	srand(seed)
	for (i = 0; i < 512; i++)
		word[i] = sprintf("%x", int(rand() * 2147483647))
	for (n = 0; n < mib * 1048576; n += length(line) + 1) {
		line = ""
		for (k = 0; k < 24; k++)
			line = line word[int(rand() * rand() * 512)] " "
		if (n % 7 == 0)
			line = line rand() rand() rand()
		print line
	}
}
