#!/bin/sh
# In place of ssh: runs the command, its last argument, on this machine. It outlives this script.
for last; do :; done
exec setsid -w sh -c "$last"
