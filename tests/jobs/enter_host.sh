#!/bin/sh
# In place of ssh: runs the command, its last argument, on this machine.
for last; do :; done
exec sh -c "$last"
