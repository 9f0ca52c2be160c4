/* space/place: the folders of spaces that have a name without a slash: a folder of the user's own,
 * whatever further users have put in the way: the names of files, of the folder, links, sockets,
 * folders that further users may enter; where the environment's folder is missing or not sound, the
 * next folder. Names to which further users are admitted are shared. Users are children of this
 * process, in /dev/shm and /run of its own.
 * matrix: none */
#include <fcntl.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/mount.h>

#include "setuid.h"
#include "space_test.h"

enum { OWNER = 54321, ATTACKER = 54322, GUEST = 54323 };

#define IN_SHM "/dev/shm/kochab-54321"
#define RUN_USER "/run/user/54321"

static const char *session; /* the value of XDG_RUNTIME_DIR, NULL: none */

/* Runs act in a process of this user; a CHECK that fails there fails here. */
static void as(uint32_t user, void (*act)(void))
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		umask(022);
		if (session)
			setenv("XDG_RUNTIME_DIR", session, 1);
		else
			unsetenv("XDG_RUNTIME_DIR");
		if (user != geteuid() && (setgid(user) || setuid(user)))
			_exit(3);
		act();
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

static bool is_there(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

static int create(void)
{
	kb_space_t *s = NULL;
	int e = kb_space_create(&s, "shop", NULL);

	return e ? e : kb_space_detach(s);
}

static int attach(void)
{
	kb_space_t *s = NULL;
	kb_space_info_t info;
	int e = kb_space_attach(&s, "shop", 0);

	if (e)
		return e;
	kb_space_info(s, &info);
	CHECK_EQ(info.owner, geteuid());
	return kb_space_detach(s);
}

/* From nothing to nothing: the space is made, found, and in no other user's way. */
static void works(void)
{
	CHECK_EQ(attach(), ENOENT);
	CHECK_EQ(create(), 0);
	CHECK_EQ(create(), EEXIST);
	CHECK_EQ(attach(), 0);
	CHECK_EQ(kb_space_unlink("shop"), 0);
	CHECK_EQ(attach(), ENOENT);
}

static void makes(void) { CHECK_EQ(create(), 0); }
static void finds(void) { CHECK_EQ(attach(), 0); }
static void finds_none(void) { CHECK_EQ(attach(), ENOENT); }
static void may_not_make(void) { CHECK_EQ(create(), EPERM); }
static void exists(void) { CHECK_EQ(create(), EEXIST); }

static void removes(void)
{
	CHECK_EQ(kb_space_unlink("shop"), 0);
	CHECK_EQ(attach(), ENOENT);
}

/* Checks that the file comes to stand in this folder, and is gone again. */
static void stands_in(const char *folder)
{
	char path[128];
	struct stat st;

	as(OWNER, works);
	as(OWNER, makes);
	snprintf(path, sizeof path, "%s/shop", folder);
	CHECK_EQ(stat(path, &st), 0);
	CHECK_EQ(st.st_uid, OWNER);
	CHECK_EQ(st.st_mode & 07777, 0600);
	CHECK_EQ(stat(folder, &st), 0);
	CHECK_EQ(st.st_mode & 07777, 0700);
	as(OWNER, removes);
	CHECK(!is_there(path));
}

/* ---- the environment's folder ---------------------------------------------------------------- */

static void make_folder(const char *path, uint32_t user, mode_t mode)
{
	if (mkdir(path, 0700))
		CHECK_EQ(errno, EEXIST);
	CHECK_EQ(chown(path, user, user), 0);
	CHECK_EQ(chmod(path, mode), 0);
}

static void sessions(void)
{
	session = NULL;
	stands_in(IN_SHM);
	make_folder("/run/session", OWNER, 0700);
	session = "/run/session";
	stands_in("/run/session/kochab");
	session = "/run/session/";
	stands_in("/run/session/kochab");
	/* processes with and without that variable agree on the user's folder */
	make_folder(RUN_USER, OWNER, 0700);
	session = NULL;
	stands_in(RUN_USER "/kochab");
	session = RUN_USER;
	stands_in(RUN_USER "/kochab");
	as(OWNER, makes);
	session = NULL;
	as(OWNER, finds);
	as(OWNER, exists);
	session = "/run/session";
	as(OWNER, finds);
	as(OWNER, exists);
	as(OWNER, removes);
	CHECK_EQ(chmod(RUN_USER, 0755), 0); /* not sound any more: so the next folder */
	session = NULL;
	as(OWNER, makes);
	session = "/run/session";
	as(OWNER, finds);
	as(OWNER, exists);
	as(OWNER, removes);
}

static void bad_sessions(void)
{
	static const struct { const char *value; uint32_t user; mode_t mode; } bad[] = {
		{ "", 0, 0 }, { "run/session", 0, 0 }, { "session", 0, 0 }, { "./", 0, 0 },
			{ "/run/no.such.folder", 0, 0 },
		{ "/dev/null", 0, 0 }, { "/run/others", ATTACKER, 0777 }, { "/run/roots", 0, 0755 },
			{ "/run/wide", OWNER, 0770 },
		{ "/run/seen", OWNER, 0755 }, { "/run/link", 0, 0 }, { "/proc/self", 0, 0 },
	};

	CHECK_EQ(chdir("/"), 0);
	CHECK_EQ(symlink("/run/session", "/run/link"), 0);
	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
		if (bad[i].mode)
			make_folder(bad[i].value, bad[i].user, bad[i].mode);
		session = bad[i].value;
		stands_in(IN_SHM);
		CHECK(!is_there("/run/session/kochab/shop"));
	}
	/* the folder under our name there is not ours alone */
	session = "/run/session";
	make_folder("/run/session/kochab", OWNER, 0750);
	stands_in(IN_SHM);
	make_folder("/run/session/kochab", ATTACKER, 0700);
	stands_in(IN_SHM);
	CHECK_EQ(rmdir("/run/session/kochab"), 0);
	CHECK_EQ(symlink("/run/others", "/run/session/kochab"), 0);
	stands_in(IN_SHM);
	CHECK_EQ(unlink("/run/session/kochab"), 0);
	stands_in("/run/session/kochab");
}

/* A folder without room is passed over; so is a folder that is not in memory. */
static void small(void)
{
	struct stat st;

	CHECK_EQ(mkdir("/run/small", 0700), 0);
	CHECK_EQ(mount("none", "/run/small", "tmpfs", 0, "size=64k,mode=0700,uid=54321,gid=54321"), 0);
	session = "/run/small";
	stands_in(IN_SHM);
	CHECK_EQ(umount("/run/small"), 0);
	if (stat("/var/tmp", &st) == 0) {
		char disk[] = "/var/tmp/test.place.XXXXXX";

		CHECK(mkdtemp(disk) != NULL);
		make_folder(disk, OWNER, 0700);
		session = disk;
		as(OWNER, works);
		CHECK_EQ(rmdir(disk), 0); /* no folder was made there */
	}
}

/* ---- obstacles of further users -------------------------------------------------------------- */

static const char *planted;

static void plant_file(void) { close(open(planted, O_CREAT | O_RDWR, 0666)); }
static void plant_closed(void) { close(open(planted, O_CREAT | O_RDWR, 0600)); }
static void plant_link(void) { CHECK_EQ(symlink("/dev/zero", planted), 0); }
static void plant_fifo(void) { CHECK_EQ(mkfifo(planted, 0666), 0); }
static void plant_folder(void) { umask(0); CHECK_EQ(mkdir(planted, 0777), 0); }
static void plant_own_link(void) { CHECK_EQ(symlink("/run/session", planted), 0); }
static void plant_space(void)
{
	kb_space_t *s = NULL;

	CHECK_EQ(kb_space_create(&s, "shop", &(kb_space_config_t){ .mode = 0666 }), 0);
}

static void take_away(void)
{
	CHECK(is_there(planted));
	if (unlink(planted))
		CHECK_EQ(rmdir(planted), 0);
}

/* Of the file: as if they did not exist. Of the folder: then there is none,
 * and none is made elsewhere. */
static void names_taken(void)
{
	static void (*const file[])(void) =
		{ plant_file, plant_closed, plant_link, plant_fifo, plant_folder, plant_space };
	static void (*const folder[])(void) =
		{ plant_folder, plant_file, plant_link, plant_fifo, plant_own_link };

	session = NULL;
	planted = "/dev/shm/kochab.shop";
	for (unsigned i = 0; i < sizeof file / sizeof *file; i++) {
		as(ATTACKER, file[i]);
		stands_in(IN_SHM);
		take_away();
	}
	planted = IN_SHM;
	CHECK_EQ(rmdir(IN_SHM), 0);
	for (unsigned i = 0; i < sizeof folder / sizeof *folder; i++) {
		session = NULL;
		as(ATTACKER, folder[i]);
		as(OWNER, finds_none);
		as(OWNER, may_not_make);
		CHECK(!is_there(IN_SHM "/shop") && !is_there("/dev/shm/kochab.shop"));
		session = "/run/session";
		stands_in("/run/session/kochab");
		take_away();
	}
	/* our own folder, where further users may write, too */
	session = NULL;
	make_folder(IN_SHM, OWNER, 0770);
	as(OWNER, may_not_make);
	make_folder(IN_SHM, OWNER, 0700);
}

/* ---- sharing --------------------------------------------------------------------------------- */

static void makes_shared(void)
{
	kb_space_t *s = NULL;

	CHECK_EQ(kb_space_create(&s, "shop", &(kb_space_config_t){ .mode = 0666 }), 0);
	CHECK_EQ(kb_space_detach(s), 0);
}

static void finds_of_owner(void)
{
	kb_space_t *s = NULL;
	kb_space_info_t info;

	CHECK_EQ(kb_space_attach_of(&s, "shop", 0, OWNER), 0);
	kb_space_info(s, &info);
	CHECK_EQ(info.owner, OWNER);
	CHECK_EQ(kb_space_detach(s), 0);
}

static void finds_none_of_owner(void)
{
	kb_space_t *s = NULL;

	CHECK_EQ(kb_space_attach_of(&s, "shop", 0, OWNER), ENOENT);
	CHECK_EQ(kb_space_attach_of(&s, IN_SHM "/shop", 0, OWNER), EACCES);
}

static void finds_attackers(void)
{
	kb_space_t *s = NULL;

	CHECK_EQ(kb_space_attach_of(&s, "shop", 0, OWNER), EPERM);
}

static void shares(void)
{
	struct stat st;

	session = NULL;
	as(OWNER, makes_shared);
	CHECK_EQ(stat("/dev/shm/kochab.shop", &st), 0);
	CHECK_EQ(st.st_mode & 07777, 0666);
	as(OWNER, finds);
	as(OWNER, exists);
	as(GUEST, finds_of_owner);
	as(GUEST, finds_none);
	as(0, finds_of_owner);
	as(OWNER, removes);
	as(OWNER, makes);
	as(GUEST, finds_none_of_owner);
	as(0, finds_none);
	as(0, finds_of_owner);
	as(OWNER, removes);
	as(ATTACKER, makes_shared);
	as(GUEST, finds_attackers);
	as(ATTACKER, removes);
	/* a space of root is for all users */
	as(0, makes_shared);
	as(GUEST, exists);
	as(0, removes);
}

/* Spaces of a version that had all of them in /dev/shm. */
static void earlier(void)
{
	session = NULL;
	as(OWNER, makes);
	CHECK_EQ(rename(IN_SHM "/shop", "/dev/shm/kochab.shop"), 0);
	as(OWNER, finds);
	as(OWNER, exists);
	as(GUEST, finds_none);
	as(OWNER, removes);
	CHECK(!is_there("/dev/shm/kochab.shop"));
}

/* ---- a program with more rights than its caller ---------------------------------------------- */

static void runs_setuid(void)
{
	execl("/run/bin/setuid", "setuid", "make", (char *)NULL);
	_exit(4);
}

static void secure(void)
{
	CHECK_EQ(mkdir("/run/bin", 0755), 0);
	setuid_copy("/run/bin/setuid");
	make_folder("/run/of.root", 0, 0700);
	session = "/run/of.root";
	as(OWNER, runs_setuid);
	CHECK(!is_there("/run/of.root/kochab"));
	CHECK(is_there("/dev/shm/kochab-0/shop"));
	as(0, removes);
	as(0, works);
	CHECK(is_there("/run/of.root/kochab")); /* root itself has it there */
}

/* The program that secure runs. */
static int make_as_setuid(void)
{
	CHECK(getauxval(AT_SECURE) != 0);
	CHECK_EQ(geteuid(), 0);
	CHECK_EQ(create(), 0);
	return 0;
}

static void odd_names(void)
{
	kb_space_t *s;

	CHECK_EQ(kb_space_create(&s, ".", NULL), EINVAL);
	CHECK_EQ(kb_space_create(&s, "..", NULL), EINVAL);
	CHECK_EQ(kb_space_attach(&s, "..", 0), EINVAL);
	CHECK_EQ(kb_space_unlink("."), EINVAL);
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "make") == 0)
		return make_as_setuid();
	if (geteuid() != 0 || unshare(CLONE_NEWNS) ||
			mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL)) {
		puts("no other users here");
		return 77;
	}
	CHECK_EQ(mount("none", "/dev/shm", "tmpfs", 0, "mode=1777,size=64m"), 0);
	CHECK_EQ(mount("none", "/run", "tmpfs", 0, "mode=0755,size=64m"), 0);
	CHECK_EQ(mkdir("/run/user", 0755), 0);
	sessions();
	bad_sessions();
	small();
	names_taken();
	shares();
	earlier();
	secure();
	odd_names();
	return 0;
}
