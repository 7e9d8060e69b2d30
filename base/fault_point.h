/*
 * Points at which a process can be told to die, for tests of what is left behind: CRICKET_FAULT=N
 * kills the process that comes to point N there and then (SIGKILL), as kill -9 or a power cut
 * would.  The numbers are stable.  In a process of another kind the same variable does nothing, so
 * one environment serves them all.
 *
 * Threading: none needed.
 */
#pragma once

enum ckt_fault_point {
	/* cricket-server */
	/* the worker has written an image, nobody was told */
	CKT_FAULT_SERVER_SAVED = 101,
	/* the mark of a parked or moved session is written, its worker not told */
	CKT_FAULT_SERVER_RELEASE = 102,
	CKT_FAULT_SERVER_RESTORED = 103,    /* a session is restored, nobody was told */
	CKT_FAULT_SERVER_STAGE_MADE = 104,  /* a stage is made, nobody was told */
	CKT_FAULT_SERVER_STAGE_WRITE = 105, /* a piece of an image arrived */
	CKT_FAULT_SERVER_STAGE_READ = 106,  /* a piece of an image is about to leave */
	CKT_FAULT_SERVER_PAUSED = 107,      /* a worker is paused, nobody was told */
	/* cricketctl */
	CKT_FAULT_CTL_CHECKPOINT_MADE = 201,  /* the partial directory is made */
	CKT_FAULT_CTL_CHECKPOINT_SAVED = 202, /* the image is in it */
	/* it has its name; a session to be stopped is still held */
	CKT_FAULT_CTL_CHECKPOINT_RENAMED = 203,
	/* in the middle of an image's way from the server */
	CKT_FAULT_CTL_FETCH = 204,
	CKT_FAULT_CTL_SEND = 205, /* and to it */
	/* the new state file is written, but has not its name yet */
	CKT_FAULT_CTL_STATE_FILE = 206,
	CKT_FAULT_CTL_MIGRATE_ROUND = 207, /* a round is saved */
	CKT_FAULT_CTL_MIGRATE_HELD = 208,  /* the source is frozen for the last time */
	/* the target has the session, the source was not told to end */
	CKT_FAULT_CTL_MIGRATE_RESTORED = 209,
	CKT_FAULT_CTL_MIGRATE_RELEASED = 210, /* the source has ended */
	/* the target has taken a round, the session still runs at the source */
	CKT_FAULT_CTL_MIGRATE_AHEAD = 211,
	/* the client is quiet, its session held, nothing of it saved */
	CKT_FAULT_CTL_CLIENT_QUIET = 212,
	/* CRIU has written it; with --stop it stands still */
	CKT_FAULT_CTL_CLIENT_SAVED = 213,
	CKT_FAULT_CTL_CLIENT_RESTORE = 214, /* the session is restored, its client not yet */
};

void ckt_fault(enum ckt_fault_point point);
