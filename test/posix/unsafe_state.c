/* Functions that keep a state between calls, called by two threads turn by turn: a thing begun goes
 * on where its thread left it. Plain, strtok at least does not: so the test can fail. */
#include "turns.h"

#include <ftw.h>
#include <locale.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <uchar.h>
#include <unistd.h>
#include <wchar.h>

static bool on_kochab, kept;

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

int main(void)
{
	on_kochab = under_kochab();
	all_things();
	return 0;
}
