/*-------------------------------------------------------------------------
 *
 * other_order.c
 *	  A C library whose strcoll orders some strings otherwise than its tables say.
 *
 * Preloaded (LD_PRELOAD) into a server by test/t/collation_check.t.  What it does is said by the file that
 * OTHER_ORDER names, which a process reads when it first asks for something, and again while it is slow:
 *
 *	  strings		strcoll has digits in the place of each other, 9 first
 *	  slow			strcoll takes a while
 *	  key			in parallel workers strxfrm has another key for each string
 *
 * The order is a total one all the same.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE

#include <dlfcn.h>
#include <fcntl.h>
#include <locale.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static bool other_strings, slow, other_keys;

static pid_t looked;

/* Reads what is to be done, once in a process. */
static void
look(void)
{
	char text[64] = "";
	char title[256] = "";
	int file;

	if (looked == getpid())
		return;
	looked = getpid();
	file = open(getenv("OTHER_ORDER") != NULL ? getenv("OTHER_ORDER") : "", O_RDONLY);
	if (file >= 0)
	{
		(void) !read(file, text, sizeof(text) - 1);
		close(file);
	}
	file = open("/proc/self/cmdline", O_RDONLY);
	if (file >= 0)
	{
		(void) !read(file, title, sizeof(title) - 1);
		close(file);
	}
	other_strings = strstr(text, "strings") != NULL;
	slow = strstr(text, "slow") != NULL;
	other_keys = strstr(text, "key") != NULL && strstr(title, "parallel worker") != NULL;
}

/* A copy of a string with other digits, which the caller frees. */
static char *
turn(const char *string)
{
	char *turned = strdup(string);

	for (char *c = turned; *c != '\0'; c++)
	{
		if (*c >= '0' && *c <= '9')
			*c = '0' + '9' - *c;
	}
	return turned;
}

int
strcoll_l(const char *a, const char *b, locale_t locale)
{
	static int (*real)(const char *, const char *, locale_t);
	char *left, *right;
	int order;

	look();
	if (real == NULL)
		real = (int (*)(const char *, const char *, locale_t)) dlsym(RTLD_NEXT, "strcoll_l");
	if (slow)
	{
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
		looked = 0;
	}
	if (!other_strings)
		return real(a, b, locale);
	left = turn(a);
	right = turn(b);
	order = real(left, right, locale);
	free(left);
	free(right);
	return order;
}

int
strcoll(const char *a, const char *b)
{
	locale_t locale = uselocale((locale_t) 0);

	if (locale != LC_GLOBAL_LOCALE)
		return strcoll_l(a, b, locale);
	{
		static locale_t global;

		if (global == (locale_t) 0)
			global = newlocale(LC_ALL_MASK, setlocale(LC_COLLATE, NULL), (locale_t) 0);
		return strcoll_l(a, b, global);
	}
}

size_t
strxfrm_l(char *key, const char *string, size_t room, locale_t locale)
{
	static size_t (*real)(char *, const char *, size_t, locale_t);
	size_t length;

	look();
	if (real == NULL)
		real = (size_t(*)(char *, const char *, size_t, locale_t)) dlsym(RTLD_NEXT, "strxfrm_l");
	length = real(key, string, room, locale);
	/* The last byte is not of the first level. */
	if (other_keys && length > 0 && length < room)
		key[length - 1] ^= 1;
	return length;
}
