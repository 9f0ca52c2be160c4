// LevelDB: 8 threads put, read back and delete keys of their own while its compactions run. Prints the same numbers
// whatever runs its threads.
#include <leveldb/db.h>
#include <leveldb/write_batch.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

static std::string value_of(int thread, int i)
{
	return std::string(100 + i % 100, (char)('a' + thread)) + std::to_string(i);
}

int main()
{
	char dir[] = "leveldb-test-XXXXXX";
	leveldb::Options options;
	leveldb::DB *db = nullptr;
	std::atomic<long> wrong = 0;
	std::vector<std::thread> crowd;
	long keys = 0, bytes = 0;

	options.create_if_missing = true;
	options.write_buffer_size = 64 << 10;
	if (!mkdtemp(dir) || !leveldb::DB::Open(options, dir, &db).ok())
		return 1;
	for (int t = 0; t < 8; t++)
		crowd.emplace_back([&, t] {
			for (int i = 0; i < 1000; i++) {
				std::string key = std::to_string(t) + "/" + std::to_string(i), got;

				wrong += !db->Put({}, key, value_of(t, i)).ok();
				wrong += !db->Get({}, key, &got).ok() || got != value_of(t, i);
				if (i % 3 == 0)
					wrong += !db->Delete({}, key).ok();
			}
		});
	for (auto &t : crowd)
		t.join();
	db->CompactRange(nullptr, nullptr);
	leveldb::Iterator *it = db->NewIterator({});
	for (it->SeekToFirst(); it->Valid(); it->Next(), keys++)
		bytes += it->value().size();
	delete it;
	delete db;
	leveldb::DestroyDB(dir, options);
	printf("wrong %ld keys %ld bytes %ld\n", wrong.load(), keys, bytes);
	return wrong != 0;
}
