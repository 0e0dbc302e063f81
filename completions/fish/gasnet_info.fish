# Generated from command-line/src by: UPDATE=1 cargo test -p command-line
complete -c gasnet_info -f
complete -c gasnet_info -s v -l versions -d 'versions of the library and of its interfaces'
complete -c gasnet_info -s b -l build -d 'compiler, target and options of the build'
complete -c gasnet_info -s c -l environment -d 'each environment variable of the library: its value and where it comes from'
complete -c gasnet_info -s n -l networks -d 'networks of the library'
complete -c gasnet_info -s s -l system -d 'CPUs, memory and limits of this host'
complete -c gasnet_info -l json -d 'print JSON'
complete -c gasnet_info -s h -l help -d 'print this text'
complete -c gasnet_info -l version -d 'print the version'
