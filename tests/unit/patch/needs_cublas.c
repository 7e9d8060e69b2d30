/* Needs what it is linked with, and uses nothing of it. */
int ckt_needs_cublas;
