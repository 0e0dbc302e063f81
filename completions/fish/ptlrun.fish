# Generated from command-line/src by: UPDATE=1 cargo test -p command-line
complete -c ptlrun -x -a '(__fish_complete_subcommand -- -n)' -d program
complete -c ptlrun -s n -x -d 'number of processes, 1 to 1024'
complete -c ptlrun -s h -l help -d 'print this text'
complete -c ptlrun -l version -d 'print the version'
