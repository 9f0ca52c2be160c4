// example/pipeline.cc - C++: the names of files go through a channel to a crew of lightweight threads, and the words that
// these count come together in a map under a mutex. A thread that reads says that it may block: others go on meanwhile.
#include <kochab/kochab.hpp>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>
#include <string>

using words = std::map<std::string, unsigned>;

static words count(const std::string &name)
{
	words found;
	std::string word;
	kb_blocking_begin(); // others go on while the file is read
	std::ifstream in(name);
	while (in >> word)
		found[word]++;
	kb_blocking_end();
	return found;
}

int main(int argc, char **argv)
{
	kochab::channel<std::string> names(16);
	kochab::mutex lock;
	words all;
	{
		std::vector<kochab::thread> crew;
		for (int i = 0; i < 8; i++)
			crew.emplace_back([&] {
				for (std::string &name : names) {
					words found = count(name);
					std::lock_guard<kochab::mutex> hold(lock);
					for (const auto &[word, n] : found)
						all[word] += n;
				}
			});
		for (int i = 1; i < argc; i++)
			names.send(argv[i]);
		names.close();
	} // joins
	auto most = kochab::async([&] {
		return std::max_element(all.begin(), all.end(), [](auto &a, auto &b) { return a.second < b.second; });
	});
	std::cout << all.size() << " words";
	if (!all.empty())
		std::cout << ", the most frequent is " << most.get()->first;
	std::cout << '\n';
}
