# Generated from command-line/src by: UPDATE=1 cargo test -p command-line
complete -c gasnet_trace -n __fish_use_subcommand -f
complete -c gasnet_trace -n __fish_use_subcommand -a summary -d 'sums up counts, bytes and times of the files of GASNET_TRACEFILE and GASNET_STATSFILE'
complete -c gasnet_trace -n '__fish_seen_subcommand_from summary' -l by -x -a 'line operation rank' -d 'what a row stands for'
complete -c gasnet_trace -n __fish_use_subcommand -a perfetto -d 'converts a trace of GASNET_TRACEFILE for ui.perfetto.dev or chrome://tracing'
complete -c gasnet_trace -n '__fish_seen_subcommand_from perfetto' -s o -l output -r -F -d 'write this file, or standard output if it is -'
complete -c gasnet_trace -n __fish_use_subcommand -a credits -d 'draws the files of GASNET_PORTAL_CREDIT_STATS (gasnet_credits.RANK)'
complete -c gasnet_trace -n '__fish_seen_subcommand_from credits' -s o -l output -r -F -d 'write this file, or standard output if it is -'
complete -c gasnet_trace -n __fish_use_subcommand -a firehose -d 'draws registered memory and hit rates of a trace of GASNET_TRACEFILE'
complete -c gasnet_trace -n '__fish_seen_subcommand_from firehose' -s o -l output -r -F -d 'write this file, or standard output if it is -'
complete -c gasnet_trace -s h -l help -d 'print this text'
complete -c gasnet_trace -l version -d 'print the version'
