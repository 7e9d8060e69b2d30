/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cricket-run: starts a program so that its CUDA calls go to a Cricket server.  It sets environment
 * variables and replaces itself by the program.  Only with --soft (run_soft.c) it stays as the
 * parent of the program and of a private server.
 */
#include "client/run/run.h"
#include "base/size_text.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_NO_SERVER = 125, EXIT_REFUSED = 126, EXIT_NOT_FOUND = 127, LONG_OPTION = 256 };

static void print_help(void)
{
	fputs("usage: cricket-run [--server ADDRESS [--place POLICY] | --soft] [--verbose] [--] COMMAND [ARGUMENT...]\n"
	      "\n"
	      "Runs COMMAND with its CUDA calls answered by a Cricket server.\n"
	      "\n",
		stdout);
	for (size_t i = 0; i < RUN_OPTIONS; i++)
		ckt_option_print(&run_option_table[i], true, stdout);
	fputs("\n"
	      "The status is COMMAND's own (128 + N when signal N ended it), 2 for a wrong option, 125 when the private server\n"
	      "does not start or --place finds none, 126 when COMMAND cannot be executed, 127 when it is not found.\n",
		stdout);
}

void ckt_run_say(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fputs("cricket-run: ", stderr);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
}

static bool own_directory(char ret_directory[PATH_MAX])
{
	ssize_t length = readlink("/proc/self/exe", ret_directory, PATH_MAX - 1);

	if (length <= 0)
		return false;
	ret_directory[length] = 0;
	*strrchr(ret_directory, '/') = 0;
	return true;
}

static bool join(char ret_path[PATH_MAX], const char *directory, const char *rest)
{
	return snprintf(ret_path, PATH_MAX, "%s/%s", directory, rest) < PATH_MAX;
}

static bool holds_libraries(const char *directory)
{
	char path[PATH_MAX];

	return join(path, directory, "libcricket-client.so") && access(path, R_OK) == 0;
}

/* Whether LD_PRELOAD can name files there: the loader splits its lists at these characters. */
static bool loader_can_name(const char *directory)
{
	return !strpbrk(directory, " :");
}

/*
 * The directory that the user gave, without links.  A link to a place that the loader cannot name
 * stays as it is.
 */
static bool resolve(const char *given, char ret_directory[PATH_MAX])
{
	if (!realpath(given, ret_directory))
		return false;
	if (!loader_can_name(ret_directory) && given[0] == '/' && loader_can_name(given) &&
		strlen(given) < PATH_MAX)
		strcpy(ret_directory, given);
	return true;
}

bool ckt_run_find_libraries(char ret_directory[PATH_MAX])
{
	/*
	 * Installed in the plain layout, installed in this system's directory for libraries, and in
	 * the build tree.
	 */
	static const char *const relative[] = {"../lib/cricket", CKT_LIBDIR_FROM_BINDIR, "."};
	const char *given = getenv("CRICKET_LIBDIR");
	char own[PATH_MAX], candidate[PATH_MAX];

	if (given && given[0]) {
		if (holds_libraries(given) && resolve(given, ret_directory))
			return true;
		ckt_run_say("CRICKET_LIBDIR=%s holds no libcricket-client.so: correct the variable "
			    "or unset it",
			given);
		return false;
	}
	for (size_t i = 0; own_directory(own) && i < sizeof(relative) / sizeof(relative[0]); i++)
		if (join(candidate, own, relative[i]) && holds_libraries(candidate) &&
			realpath(candidate, ret_directory))
			return true;
	ckt_run_say("the client libraries are neither in ../lib/cricket beside this program nor in "
		    "%s: install Cricket again, or name their directory in CRICKET_LIBDIR",
		CKT_LIBDIR_FROM_BINDIR);
	return false;
}

bool ckt_run_find_program(const char *name, const char *built, char ret_path[PATH_MAX])
{
	char own[PATH_MAX], candidate[PATH_MAX];

	if (!own_directory(own))
		return false;
	return (join(candidate, own, name) && access(candidate, X_OK) == 0 &&
		       realpath(candidate, ret_path)) ||
		(join(candidate, own, built) && access(candidate, X_OK) == 0 &&
			realpath(candidate, ret_path));
}

/* Puts `first` before the variable's present value. */
static bool prepend(const char *variable, const char *first)
{
	const char *old = getenv(variable);
	char *value = NULL;
	bool done;

	if (asprintf(&value, "%s%s%s", first, old && old[0] ? ":" : "", old ? old : "") < 0)
		return false;
	done = setenv(variable, value, 1) == 0;
	free(value);
	return done;
}

/*
 * For programs that search directories for libcuda.so and libcudart.so: ctypes.util.find_library
 * (tinygrad), PyCUDA and cuda-pathfinder.  Such programs do not ask the loader by name.  The user's
 * own directories stay, after ours.
 */
static bool find_ours(const char *directory)
{
	return setenv("TRITON_LIBCUDA_PATH", directory, 0) == 0 &&
		prepend("LD_LIBRARY_PATH", directory);
}

/* The driver of a `local:` address; NULL for other addresses. */
static const char *local_driver(const char *address)
{
	if (!address)
		address = getenv("REMOTE_GPU_ADDRESS");
	if (!address || strncmp(address, "local:", 6) != 0)
		return NULL;
	return address[6] ? address + 6 : "libcuda.so.1";
}

/* Makes compilers at run time leave PTX unchanged: see nvrtc.h, soft_ptxas.c. */
static bool prepare_soft(const char *directory)
{
	char ptxas[PATH_MAX];

	return snprintf(ptxas, sizeof(ptxas), "%s/soft-ptxas", directory) < (int)sizeof(ptxas) &&
		setenv("CRICKET_SOFT_PTX", "1", 1) == 0 &&
		setenv("TRITON_PTXAS_PATH", ptxas, 0) == 0 &&
		setenv("TRITON_PTXAS_BLACKWELL_PATH", ptxas, 0) == 0;
}

static bool prepare_replay(const struct ckt_run_options *options)
{
	return !options->replay_memory ||
		(setenv("CRICKET_DURABLE", "1", 1) == 0 &&
			setenv("CRICKET_REPLAY_MEMORY", options->replay_memory, 1) == 0);
}

bool ckt_run_prepare_environment(const struct ckt_run_options *options, const char *address)
{
	char directory[PATH_MAX], *preload = NULL, *audit = NULL;
	const char *driver = local_driver(address);
	bool done = false;
	int size;

	if (driver && strchr(driver, ',') && access(driver, F_OK)) {
		ckt_run_say("local: is this machine's own driver and cannot be combined with other "
			    "addresses: remove one");
		return false;
	}
	if (!ckt_run_find_libraries(directory))
		return false;
	if (!loader_can_name(directory)) {
		ckt_run_say("the path %s holds a space or a colon, which LD_PRELOAD cannot hold: "
			    "move the libraries, or name a link to them in CRICKET_LIBDIR",
			directory);
		return false;
	}
	/*
	 * All libraries are named by path.  The loader first looks for what the program needs, and
	 * then for what a preloaded library needs.  Without its path, the loader would find the
	 * system's libcuda.so.1 for a program that is linked with it, or none.
	 */
	/*
	 * our runtime, and the patcher for static runtimes, over a driver that is loaded first and
	 * so used by all
	 */
	if (driver)
		size = asprintf(&preload, "%s:%s/libcudart.so.13:%s/libcricket-patch.so", driver,
			directory, directory);
	else
		size = asprintf(&preload,
			"%s/libcricket-client.so:%s/libcudart.so.13:%s/libcuda.so.1:%s/libnvidia-ml.so.1",
			directory, directory, directory, directory);
	if (size >= 0 && asprintf(&audit, "%s/libcricket-audit.so", directory) >= 0)
		done = prepend("LD_PRELOAD", preload) && prepend("LD_AUDIT", audit) &&
			(driver || find_ours(directory)) &&
			(!options->soft || prepare_soft(directory)) &&
			(!address || setenv("REMOTE_GPU_ADDRESS", address, 1) == 0) &&
			prepare_replay(options) &&
			(!options->verbose || setenv("CRICKET_LOG", "debug", 1) == 0);
	if (!done)
		ckt_run_say("cannot set the environment: %s", strerror(errno));
	free(preload);
	free(audit);
	return done;
}

int ckt_run_exec(char **command)
{
	execvp(command[0], command);
	int error = errno;
	if (error == ENOENT && !strchr(command[0], '/'))
		ckt_run_say("%s: not found in PATH", command[0]);
	else
		ckt_run_say("%s: %s", command[0], strerror(error));
	return error == ENOENT || error == ENOTDIR ? EXIT_NOT_FOUND : EXIT_REFUSED;
}

/*
 * Converts the table for getopt_long.  The value of an option is its index in the table plus
 * LONG_OPTION, because a letter must be looked up.
 */
static void make_getopt_options(
	struct option ret_long[RUN_OPTIONS + 1], char ret_letters[2 * RUN_OPTIONS + 2])
{
	char *letters = ret_letters;

	/* the first word that is not an option is the command, which gets the words after it */
	*letters++ = '+';
	for (int i = 0; i < RUN_OPTIONS; i++) {
		const struct ckt_option *option = &run_option_table[i];
		ret_long[i] = (struct option){option->name,
			option->argument ? required_argument : no_argument, NULL, LONG_OPTION + i};
		if (option->letter)
			*letters++ = option->letter;
		if (option->letter && option->argument)
			*letters++ = ':';
	}
	ret_long[RUN_OPTIONS] = (struct option){0};
	*letters = 0;
}

/* The option for getopt_long's result; RUN_OPTIONS if getopt_long refused the argument. */
static enum ckt_run_option find_option(int given)
{
	if (given >= LONG_OPTION)
		return (enum ckt_run_option)(given - LONG_OPTION);
	for (int i = 0; i < RUN_OPTIONS; i++)
		if (run_option_table[i].letter == given)
			return (enum ckt_run_option)i;
	return RUN_OPTIONS;
}

/* text: NULL where the option is not given. */
static bool good_replay_memory(const char *text)
{
	uint64_t bytes;
	bool good = !text || ckt_size_parse(text, &bytes) == 0;
	if (!good)
		ckt_run_say(
			"--replay-memory %s: not a size: give bytes, or a number with K, M or G",
			text);
	return good;
}

/* -1: continue; otherwise the exit status. */
static int parse(int argc, char **argv, struct ckt_run_options *options)
{
	struct option long_options[RUN_OPTIONS + 1];
	char letters[2 * RUN_OPTIONS + 2];
	int given;

	make_getopt_options(long_options, letters);
	while ((given = getopt_long(argc, argv, letters, long_options, NULL)) != -1) {
		switch (find_option(given)) {
		case RUN_OPTION_SERVER:
			options->server = optarg;
			break;
		case RUN_OPTION_PLACE:
			options->place = optarg;
			break;
		case RUN_OPTION_REPLAY_MEMORY:
			options->replay_memory = optarg;
			break;
		case RUN_OPTION_SOFT:
			options->soft = true;
			break;
		case RUN_OPTION_VERBOSE:
			options->verbose = true;
			break;
		case RUN_OPTION_HELP:
			print_help();
			return EXIT_SUCCESS;
		case RUN_OPTION_VERSION:
			puts("cricket-run " CKT_VERSION);
			return EXIT_SUCCESS;
		case RUN_OPTIONS:
			fputs("Try 'cricket-run --help'.\n", stderr);
			return CKT_EXIT_USAGE;
		}
	}
	if (!good_replay_memory(options->replay_memory))
		return CKT_EXIT_USAGE;
	if (options->soft && options->server) {
		ckt_run_say("--soft and --server exclude each other: --soft starts a server of its "
			    "own");
		return CKT_EXIT_USAGE;
	}
	if (options->soft && options->place) {
		ckt_run_say(
			"--soft and --place exclude each other: --place chooses among servers that "
			"run");
		return CKT_EXIT_USAGE;
	}
	if (options->server && !options->server[0]) {
		ckt_run_say("--server needs an address: host, host:port, unix:/path or file:PATH");
		return CKT_EXIT_USAGE;
	}
	if (optind >= argc) {
		ckt_run_say("no command given");
		fputs("Try 'cricket-run --help'.\n", stderr);
		return CKT_EXIT_USAGE;
	}
	options->command = argv + optind;
	return -1;
}

int main(int argc, char **argv)
{
	struct ckt_run_options options = {0};
	char place[PATH_MAX];
	int status = parse(argc, argv, &options);

	if (status >= 0)
		return status;
	if (options.soft)
		return ckt_run_soft(&options);
	if (options.place) {
		if (!ckt_run_place(options.place, options.server, place, sizeof place))
			return EXIT_NO_SERVER;
		options.server = place;
	}
	return ckt_run_prepare_environment(&options, options.server) ? ckt_run_exec(options.command)
								     : EXIT_REFUSED;
}
