/* The functions that POSIX does not require to be thread-safe, called by two threads in turn: the
 * first thread's result is still there when the second has called. On plain glibc the steps must
 * catch some of libc's functions that are known to be unsafe: so the test can fail. */
#include "turns.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <grp.h>
#include <langinfo.h>
#include <libgen.h>
#include <mntent.h>
#include <netdb.h>
#include <netinet/ether.h>
#include <pwd.h>
#include <shadow.h>
#include <string.h>
#include <unistd.h>
#include <utmpx.h>

static bool on_kochab;

/* ---- results: the text that thread `who` gets ------------------------------------------------ */

static int pty[2], pty_slave[2];
static DIR *dir[2];
static FILE *users, *groups, *mounts;

static const char *of_tm(const struct tm *t)
{
	return (const char *)t; /* compared by its first bytes */
}

static const void *r_asctime(int who)
{
	struct tm t = { .tm_year = 100 + who, .tm_mday = 1 };

	return asctime(&t);
}
static const void *r_ctime(int who) { time_t t = 1000000 + who; return ctime(&t); }
static const void *r_gmtime(int who) { time_t t = 1000000 + who; return of_tm(gmtime(&t)); }
static const void *r_localtime(int who) { time_t t = 1000000 + who; return of_tm(localtime(&t)); }
static const void *r_l64a(int who) { return l64a(1000 + who); }
static const void *r_ecvt(int who) { int p, s; return ecvt(1.5 + who, 5, &p, &s); }
static const void *r_fcvt(int who) { int p, s; return fcvt(1.5 + who, 5, &p, &s); }
static const void *r_qecvt(int who) { int p, s; return qecvt(1.5L + who, 5, &p, &s); }
static const void *r_qfcvt(int who) { int p, s; return qfcvt(1.5L + who, 5, &p, &s); }
static const void *r_strerror(int who) { return strerror(10000 + who); }
static const void *r_strsignal(int who) { return strsignal(1000 + who); }
static const void *r_inet_ntoa(int who)
{
	struct in_addr a = { htonl(0x7f000001u + (unsigned)who) };

	return inet_ntoa(a);
}
static const void *r_ether_ntoa(int who)
{
	struct ether_addr a = { { 1, 2, 3, 4, 5, (uint8_t)who } };

	return ether_ntoa(&a);
}
static const void *r_ether_aton(int who) { return ether_aton(who ? "1:2:3:4:5:6" : "6:5:4:3:2:1"); }
static const void *r_dlerror(int who) { dlopen(who ? "/nowhere/one" : "/nowhere/other", RTLD_NOW); return dlerror(); }
static const void *r_ttyname(int who) { return pty_slave[who] < 0 ? NULL : ttyname(pty_slave[who]); }
static const void *r_ptsname(int who) { return pty[who] < 0 ? NULL : ptsname(pty[who]); }
/* not by name: the linker warns of it */
static const void *r_tmpnam(int who)
{
	char *(*fn)(char *) = (char *(*)(char *))dlsym(RTLD_DEFAULT, "tmpnam");

	(void)who;
	return fn(NULL);
}
static const void *r_readdir(int who) { return dir[who] ? readdir(dir[who]) : NULL; }
static const void *r_getmntent(int who) { (void)who; return mounts ? getmntent(mounts)->mnt_fsname : NULL; }
static const void *r_basename(int who)
{
	static char a[] = "/x/first", b[] = "/x/second";

	return basename(who ? a : b);
}
static const void *r_dirname(int who)
{
	static char a[] = "/first/x", b[] = "/second/x";

	return dirname(who ? a : b);
}
static const void *r_gcvt(int who) { static char b[2][40]; return gcvt(1.25 + who, 5, b[who]); }
static const void *r_nl_langinfo(int who) { return nl_langinfo(who ? DAY_1 : DAY_2); }
static const void *r_getpwnam(int who)
{
	struct passwd *p = getpwnam(who ? "root" : "daemon");

	return p ? p->pw_name : NULL;
}
static const void *r_getpwuid(int who) { struct passwd *p = getpwuid(who ? 0 : 1); return p ? p->pw_dir : NULL; }
static const void *r_getpwent(int who) { struct passwd *p = getpwent(); (void)who; return p ? p->pw_name : NULL; }
static const void *r_fgetpwent(int who)
{
	struct passwd *p = fgetpwent(users);

	(void)who;
	return p ? p->pw_name : NULL;
}
static const void *r_getgrnam(int who)
{
	struct group *g = getgrnam(who ? "root" : "daemon");

	return g ? g->gr_name : NULL;
}
static const void *r_getgrgid(int who) { struct group *g = getgrgid(who ? 0 : 1); return g ? g->gr_name : NULL; }
static const void *r_getgrent(int who) { struct group *g = getgrent(); (void)who; return g ? g->gr_name : NULL; }
static const void *r_getspent(int who) { struct spwd *s = getspent(); (void)who; return s ? s->sp_namp : NULL; }
static const void *r_gethostbyname(int who)
{
	struct hostent *h = gethostbyname(who ? "127.0.0.1" : "127.0.0.2");

	return h ? h->h_name : NULL;
}
static const void *r_getservbyname(int who)
{
	struct servent *s = getservbyname(who ? "ssh" : "smtp", "tcp");

	return s ? s->s_name : NULL;
}
static const void *r_getservbyport(int who)
{
	struct servent *s = getservbyport(htons(who ? 22 : 25), "tcp");

	return s ? s->s_name : NULL;
}
static const void *r_getprotobyname(int who)
{
	struct protoent *p = getprotobyname(who ? "tcp" : "udp");

	return p ? p->p_name : NULL;
}
static const void *r_getprotobynumber(int who)
{
	struct protoent *p = getprotobynumber(who ? 6 : 17);

	return p ? p->p_name : NULL;
}
static const void *r_seed48(int who) { unsigned short s[3] = { (unsigned short)(7 + who), 1, 1 }; return seed48(s); }
static const void *r_getutxent(int who) { struct utmpx *u = getutxent(); (void)who; return u ? u->ut_id : NULL; }
static const void *r_getdate(int who) { return of_tm(getdate(who ? "2001-02-03" : "2004-05-06")); }
static const void *r_fgetgrent(int who)
{
	struct group *g = fgetgrent(groups);

	(void)who;
	return g ? g->gr_name : NULL;
}
static const void *r_getspnam(int who)
{
	struct spwd *s = getspnam(who ? "root" : "daemon");

	return s ? s->sp_namp : NULL;
}
static const void *r_gethostbyname2(int who)
{
	struct hostent *h = gethostbyname2(who ? "127.0.0.1" : "127.0.0.2", AF_INET);

	return h ? h->h_name : NULL;
}
static const void *r_gethostbyaddr(int who)
{
	static const unsigned char four[4] = { 127, 0, 0, 1 }, six[16] = { [15] = 1 };
	struct hostent *h = who ? gethostbyaddr(four, 4, AF_INET) : gethostbyaddr(six, 16, AF_INET6);

	return h ? h->h_addr_list[0] : NULL;
}
static const void *r_gethostent(int who)
{
	struct hostent *h = gethostent();

	(void)who;
	return h ? h->h_addr_list[0] : NULL;
}
static const void *r_getnetent(int who) { struct netent *n = getnetent(); (void)who; return n ? n->n_name : NULL; }
static const void *r_getnetbyname(int who)
{
	struct netent *n = getnetbyname(who ? "loopback" : "link-local");

	return n ? n->n_name : NULL;
}
static const void *r_getnetbyaddr(int who)
{
	struct netent *n = getnetbyaddr(who ? 127u << 24 : 169u << 24 | 254u << 16, AF_INET);

	return n ? n->n_name : NULL;
}
static const void *r_getprotoent(int who)
{
	struct protoent *p = getprotoent();

	(void)who;
	return p ? p->p_name : NULL;
}
static const void *r_getservent(int who) { struct servent *s = getservent(); (void)who; return s ? s->s_name : NULL; }
static char *(*find_crypt)(const char *, const char *);
static const void *r_crypt(int who) { return find_crypt ? find_crypt("secret", who ? "$1$aa$" : "$1$bb$") : NULL; }

static const struct result {
	const char *name;
	const void *(*call)(int who);
	size_t bytes; /* to compare; 0: a string */
	bool caught;  /* glibc's own is known to be unsafe */
} results[] = {
	{ "asctime", r_asctime, 0, true }, { "ctime", r_ctime, 0, true }, { "gmtime", r_gmtime, 12, true },
	{ "localtime", r_localtime, 12, true }, { "l64a", r_l64a, 0, true }, { "ecvt", r_ecvt, 0, true },
	{ "fcvt", r_fcvt, 0, true }, { "qecvt", r_qecvt, 0, true }, { "qfcvt", r_qfcvt, 0, true },
	{ "strerror", r_strerror, 0, false }, { "strsignal", r_strsignal, 0, false },
	{ "inet_ntoa", r_inet_ntoa, 0, false }, { "ether_ntoa", r_ether_ntoa, 0, true },
	{ "ether_aton", r_ether_aton, 6, true }, { "dlerror", r_dlerror, 0, false }, { "ttyname", r_ttyname, 0, true },
	{ "ptsname", r_ptsname, 0, true }, { "tmpnam", r_tmpnam, 0, true }, { "readdir", r_readdir, 8, false },
	{ "getmntent", r_getmntent, 0, true }, { "basename", r_basename, 0, false }, { "dirname", r_dirname, 0, false },
	{ "gcvt", r_gcvt, 0, false }, { "nl_langinfo", r_nl_langinfo, 0, false }, { "getpwnam", r_getpwnam, 0, true },
	{ "getpwuid", r_getpwuid, 0, true }, { "getpwent", r_getpwent, 0, true }, { "fgetpwent", r_fgetpwent, 0, true },
	{ "getgrnam", r_getgrnam, 0, true }, { "getgrgid", r_getgrgid, 0, true }, { "getgrent", r_getgrent, 0, true },
	{ "getspent", r_getspent, 0, true }, { "gethostbyname", r_gethostbyname, 0, true },
	{ "getservbyname", r_getservbyname, 0, true }, { "getservbyport", r_getservbyport, 0, true },
	{ "getprotobyname", r_getprotobyname, 0, true }, { "getprotobynumber", r_getprotobynumber, 0, true },
	{ "seed48", r_seed48, 6, true }, { "getutxent", r_getutxent, 4, true }, { "crypt", r_crypt, 0, true },
	{ "getdate", r_getdate, 20, true }, { "fgetgrent", r_fgetgrent, 0, true }, { "getspnam", r_getspnam, 0, true },
	{ "gethostbyname2", r_gethostbyname2, 0, true }, { "gethostbyaddr", r_gethostbyaddr, 4, true },
	{ "gethostent", r_gethostent, 4, true }, { "getnetent", r_getnetent, 0, true },
	{ "getnetbyname", r_getnetbyname, 0, true }, { "getnetbyaddr", r_getnetbyaddr, 0, true },
	{ "getprotoent", r_getprotoent, 0, true }, { "getservent", r_getservent, 0, true },
};

/* ---- turn by turn ---------------------------------------------------------------------------- */

static const struct result *testing;
static const void *given[2];
static char seen[2][256];
static size_t n_seen[2];
static bool kept, missing;

static size_t bytes_of(const void *p)
{
	size_t n = testing->bytes ? testing->bytes : strlen(p) + 1;

	return n < sizeof(seen[0]) ? n : sizeof(seen[0]);
}

/* Both are given something; then each finds its own as it was. */
static void keep_result(int who, int step)
{
	if (step < 2) {
		given[who] = testing->call(who);
		if (!given[who]) {
			missing = true;
			return;
		}
		n_seen[who] = bytes_of(given[who]);
		memcpy(seen[who], given[who], n_seen[who]);
	} else if (!missing && step < 4) {
		kept &= memcmp(seen[who], given[who], n_seen[who]) == 0;
	}
}

static void all_results(void)
{
	int absent = 0;

	for (size_t i = 0; i < sizeof(results) / sizeof(*results); i++) {
		testing = &results[i];
		kept = true;
		missing = false;
		play_both(keep_result);
		if (missing) {
			printf("%s: nothing to be had here\n", testing->name);
			absent++;
			continue;
		}
		if (memcmp(seen[0], seen[1], n_seen[0]) == 0)
			printf("%s: both were given the same, no test\n", testing->name);
		else if (on_kochab && !kept)
			printf("%s: the second call changed the first one's result\n", testing->name);
		CHECK(kept || !on_kochab);
		/* the steps find the functions known to be unsafe; a later libc may have mended them */
		if (!on_kochab && testing->caught && kept)
			printf("%s: safe in this libc\n", testing->name);
	}
	CHECK(absent < 20);
}

static void proves_itself(void)
{
	static const char *const names[] = { "asctime", "gmtime", "l64a", "ecvt" };

	for (size_t i = 0; i < sizeof(results) / sizeof(*results); i++) {
		for (size_t k = 0; k < sizeof(names) / sizeof(*names); k++) {
			if (strcmp(results[i].name, names[k]) != 0)
				continue;
			testing = &results[i];
			kept = true;
			missing = false;
			play_both(keep_result);
			CHECK_EQ(kept, on_kochab);
		}
	}
}

/* ---- setting up ------------------------------------------------------------------------------ */

static char login_file[] = "/tmp/unsafe.XXXXXX", date_file[] = "/tmp/unsafe.XXXXXX";

static void make_logins(void)
{
	struct utmpx u = { .ut_type = USER_PROCESS, .ut_line = "one", .ut_user = "one" };
	int fd = mkstemp(login_file);

	CHECK(fd >= 0);
	close(fd);
	CHECK_EQ(utmpxname(login_file), 0);
	for (int i = 0; i < 9; i++) {
		memset(u.ut_id, 'a' + i, sizeof(u.ut_id));
		u.ut_pid = 100 + i;
		CHECK(pututxline(&u) != NULL);
	}
	setutxent();
}

static void make_dates(void)
{
	int fd = mkstemp(date_file);

	CHECK(fd >= 0);
	CHECK_EQ(write(fd, "%Y-%m-%d\n", 9), 9);
	close(fd);
	CHECK_EQ(setenv("DATEMSK", date_file, 1), 0);
}

static void open_things(void)
{
	void *lib = dlopen("libcrypt.so.1", RTLD_NOW);

	for (int i = 0; i < 2; i++) {
		pty[i] = posix_openpt(O_RDWR | O_NOCTTY);
		pty_slave[i] = -1;
		if (pty[i] >= 0 && grantpt(pty[i]) == 0 && unlockpt(pty[i]) == 0)
			pty_slave[i] = open(ptsname(pty[i]), O_RDWR | O_NOCTTY);
		dir[i] = opendir(i ? "/" : "/etc");
	}
	make_logins();
	make_dates();
	groups = fopen("/etc/group", "r");
	users = fopen("/etc/passwd", "r");
	mounts = setmntent("/proc/mounts", "r");
	if (lib) /* the function that a program linked with it would get */
		find_crypt = (char *(*)(const char *, const char *))dlsym(on_kochab ? RTLD_DEFAULT : lib, "crypt");
}

int main(void)
{
	on_kochab = under_kochab();
	open_things();
	all_results();
	proves_itself();
	unlink(login_file);
	unlink(date_file);
	return 0;
}
