/* The functions that POSIX does not ask to be thread-safe, called by two threads turn by turn: what the
 * first was given is still there when the second has called, and a thing begun goes on where its thread
 * left it. On plain glibc the same steps must catch some of libc's own that are known to be unsafe: so the
 * test can fail. */
#include "test.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <langinfo.h>
#include <libgen.h>
#include <locale.h>
#include <math.h>
#include <mntent.h>
#include <netdb.h>
#include <netinet/ether.h>
#include <pthread.h>
#include <pwd.h>
#include <semaphore.h>
#include <shadow.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <uchar.h>
#include <unistd.h>
#include <utmpx.h>
#include <wchar.h>

static bool on_kochab;

/* ---- results: what thread `who` is given, as text ----------------------------------------------------- */

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
	struct netent *n = getnetbyaddr(who ? 127 << 24 : 169 << 24 | 254 << 16, AF_INET);

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

/* ---- turn by turn ---------------------------------------------------------------------------------------- */

static sem_t turn[2];
static void (*script)(int who, int step);

/* Steps 0, 1, 2 ... of the script alternate: thread 0, thread 1, thread 0 ... */
enum { STEPS = 6 };

static void *play(void *arg)
{
	int who = (int)(long)arg;

	for (int step = who; step < STEPS; step += 2) {
		CHECK_EQ(sem_wait(&turn[who]), 0);
		script(who, step);
		CHECK_EQ(sem_post(&turn[!who]), 0);
	}
	return NULL;
}

static void play_both(void (*s)(int, int))
{
	pthread_t t[2];

	script = s;
	CHECK_EQ(sem_init(&turn[0], 0, 1), 0);
	CHECK_EQ(sem_init(&turn[1], 0, 0), 0);
	for (long i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, play, (void *)i), 0);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
}

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
		/* the steps find what is known to be unsafe; a later libc may have mended it */
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

/* ---- things begun ------------------------------------------------------------------------------------------ */

static void part(bool ok)
{
	kept &= ok;
}

static void s_strtok(int who, int step)
{
	static char text[2][20] = { "a b c", "x y z" };
	const char *is = strtok(step < 2 ? text[who] : NULL, " ");

	part(is && *is == (who ? 'x' : 'a') + step / 2);
}

static void s_mbtowc(int who, int step)
{
	wchar_t c = 0;

	if (who == 1)
		part(mbtowc(&c, "y", 1) == 1 && c == L'y');
	else if (step == 0)
		part(mbtowc(&c, "\xc3", 1) == -1);
	else if (step == 2)
		part(mbtowc(&c, "\xa4", 1) == 1 && c == 0xe4);
	else
		part(mblen("\xc3\xa4", 2) == 2);
}

static void s_mbrtowc(int who, int step)
{
	wchar_t c = 0;

	if (who == 1)
		part(mbrtowc(&c, "y", 1, NULL) == 1 && c == L'y');
	else if (step == 0)
		part(mbrtowc(&c, "\xc3", 1, NULL) == (size_t)-2);
	else if (step == 2)
		part(mbrtowc(&c, "\xa4", 1, NULL) == 1 && c == 0xe4);
}

static void s_mbrlen(int who, int step)
{
	if (who == 1)
		part(mbrlen("y", 1, NULL) == 1);
	else if (step < 4)
		part(mbrlen(step ? "\xa4" : "\xc3", 1, NULL) == (step ? 1 : (size_t)-2));
}

static void s_mbsrtowcs(int who, int step)
{
	const char *y = "y", *y_again = "y", *half = step ? "\xa4" : "\xc3";
	wchar_t c[4] = { 0 };

	if (who == 1)
		part(mbsrtowcs(c, &y, 4, NULL) == 1 && mbsnrtowcs(c, &y_again, 1, 4, NULL) == 1 && c[0] == L'y');
	else if (step < 4)
		part(mbsnrtowcs(c, &half, 1, 4, NULL) == (step ? 1 : 0));
}

static void s_char16(int who, int step)
{
	char16_t c = 0;

	/* a surrogate pair: the second half is kept in the state */
	if (who == 1)
		part(mbrtoc16(&c, "y", 1, NULL) == 1 && c == u'y');
	else if (step == 0)
		part(mbrtoc16(&c, "\xf0\x9f\x98\x80", 4, NULL) == 4 && c == 0xd83d);
	else if (step == 2)
		part(mbrtoc16(&c, "", 1, NULL) == (size_t)-3 && c == 0xde00);
}

/* No state is left over in the encodings there are; the values are right. */
static void s_to_multibyte(int who, int step)
{
	char b[16] = "";
	const wchar_t *w = who ? L"y" : L"\u00e4";

	(void)step;
	part(wctomb(b, *w) == (who ? 1 : 2) && wcrtomb(b, *w, NULL) == (size_t)(who ? 1 : 2));
	part(wcsrtombs(b, &w, 16, NULL) == (size_t)(who ? 1 : 2) && wcstombs(b, L"ab", 16) == 2);
	part(c16rtomb(b, u'z', NULL) == 1 && c32rtomb(b, U'\u00e4', NULL) == 2);
}

static void s_localeconv(int who, int step)
{
	static struct lconv *c[2];

	if (step < 2)
		c[who] = localeconv();
	part(step != 1 || c[0] != c[1]);
}

static void s_lgamma(int who, int step)
{
	(void)step;
	part(lgamma(3) - log(2) < 1e-9 && lgammaf((float)(3 + who)) > 0.6f && lgammal(3) > 0.6L);
}

static void s_ctermid(int who, int step)
{
	(void)who;
	(void)step;
	part(strcmp(ctermid(NULL), "/dev/tty") == 0);
}

static void s_system(int who, int step)
{
	if (step < 2)
		part(WEXITSTATUS(system(who ? "exit 4" : "exit 3")) == (who ? 4 : 3));
}

static __thread int files;
static int count_file(const char *path, const struct stat *s, int flag, struct FTW *where)
{
	(void)path, (void)s, (void)flag, (void)where;
	files++;
	return 0;
}

static void s_nftw(int who, int step)
{
	static int first[2];

	(void)step;
	files = 0;
	part(nftw(who ? "/usr/include/linux" : "/etc/default", count_file, 8, FTW_PHYS) == 0 || step < 0);
	if (step < 2)
		first[who] = files;
	part(files == first[who]);
}

/* getlogin and cuserid: the same text for both, but not at the same place. */
static void s_login(int who, int step)
{
	static const char *name[2];

	if (step < 2)
		name[who] = getlogin();
	part(step != 1 || !name[0] || name[0] != name[1]);
}

static char *(*user_id)(char *);

static void s_cuserid(int who, int step)
{
	static const char *name[2];

	if (step < 2)
		name[who] = user_id(NULL);
	part(step != 1 || !name[0] || name[0] != name[1]);
}

static void thing(const char *name, void (*s)(int, int), bool caught)
{
	kept = true;
	play_both(s);
	if (!kept && (on_kochab || !caught))
		printf("%s: went on where another thread had begun\n", name);
	CHECK(kept || (caught && !on_kochab));
	if (kept && caught && !on_kochab)
		printf("%s: safe in this libc\n", name);
}

static void all_things(void)
{
	thing("strtok", s_strtok, true);
	CHECK_EQ(kept, on_kochab);
	thing("localeconv", s_localeconv, true);
	thing("getlogin", s_login, true);
	user_id = (char *(*)(char *))dlsym(RTLD_DEFAULT, "cuserid"); /* no header shows it */
	if (user_id)
		thing("cuserid", s_cuserid, true);
	thing("lgamma", s_lgamma, false);
	thing("ctermid", s_ctermid, false);
	thing("system", s_system, false);
	if (access("/usr/include/linux", R_OK) == 0 && access("/etc/default", R_OK) == 0)
		thing("nftw", s_nftw, false);
	if (!setlocale(LC_ALL, "C.UTF-8") && !setlocale(LC_ALL, "en_US.UTF-8")) {
		printf("no UTF-8 locale\n");
		return;
	}
	thing("mbtowc", s_mbtowc, true);
	thing("mbrtowc", s_mbrtowc, true);
	thing("mbrlen", s_mbrlen, true);
	thing("mbsrtowcs", s_mbsrtowcs, true);
	thing("mbrtoc16", s_char16, true);
	thing("wctomb", s_to_multibyte, false);
}

/* ---- setting up --------------------------------------------------------------------------------------------- */

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
	if (lib) /* the one that a program linked with it would get */
		find_crypt = (char *(*)(const char *, const char *))dlsym(on_kochab ? RTLD_DEFAULT : lib, "crypt");
}

int main(void)
{
	on_kochab = dlsym(RTLD_DEFAULT, "kb_thread_self") != NULL;
	open_things();
	all_results();
	proves_itself();
	all_things();
	unlink(login_file);
	unlink(date_file);
	return 0;
}
