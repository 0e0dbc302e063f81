# Written by `make bench`; the data files are in the same folder.
set logscale xy
set key bmargin center horizontal maxcols 2 Left reverse samplen 3 width 2
set grid linecolor '#d8d8d8'
set border linecolor '#404040'

set title 'Blocking put, 2 ranks'
set xlabel 'bytes'
set xrange [1/1.2:4096*1.2]
set xtics ('1' 1, '8' 8, '64' 64, '512' 512, '4K' 4096)
set ylabel 'time'
set format y '%.0s %cs'
set terminal svg size 800,560
set output 'put_latency.svg'
plot 'put_latency-cross-mapped.dat' using 1:($2*1e-6) with linespoints linewidth 3.5 linecolor '#0072b2' pointtype 7 pointsize 0.8 title 'libgasnet (ours), cross-mapped', \
  'put_latency-portals.dat' using 1:($2*1e-6) with linespoints linewidth 3.5 linecolor '#d55e00' pointtype 5 pointsize 0.8 title 'libgasnet (ours), through Portals', \
  'put_latency-everything.dat' using 1:($2*1e-6) with linespoints linewidth 3 linecolor '#000000' pointtype 13 pointsize 0.9 title 'libgasnet (ours), EVERYTHING', \
  'put_latency-registered.dat' using 1:($2*1e-6) with linespoints linewidth 3 linecolor '#882255' pointtype 9 pointsize 0.9 title 'libgasnet (ours), LARGE, registered on demand', \
  'put_latency-registered-events.dat' using 1:($2*1e-6) with linespoints linewidth 3 linecolor '#cc6677' dashtype 3 pointtype 5 pointsize 0.9 title 'libgasnet (ours), LARGE, registered on demand, with events', \
  'put_latency-registered-segment.dat' using 1:($2*1e-6) with linespoints linewidth 3 linecolor '#44aa99' pointtype 11 pointsize 0.9 title 'libgasnet (ours), LARGE, registered whole', \
  'put_latency-registered-segment-events.dat' using 1:($2*1e-6) with linespoints linewidth 3 linecolor '#117733' dashtype 3 pointtype 13 pointsize 0.9 title 'libgasnet (ours), LARGE, registered whole, with events', \
  'put_latency-smp.dat' using 1:($2*1e-6) with linespoints linewidth 1.2 linecolor '#009e73' pointtype 4 pointsize 0.6 title 'GASNet, smp-conduit (shared memory)', \
  'put_latency-mpi.dat' using 1:($2*1e-6) with linespoints linewidth 1.2 linecolor '#cc79a7' pointtype 6 pointsize 0.6 title 'GASNet, mpi-conduit (over MPI)', \
  'put_latency-mpi-everything.dat' using 1:($2*1e-6) with linespoints linewidth 1.2 linecolor '#999933' dashtype 3 pointtype 14 pointsize 0.7 title 'GASNet, mpi-conduit, EVERYTHING', \
  'put_latency-openmpi.dat' using 1:($2*1e-6) with linespoints linewidth 1.2 linecolor '#e69f00' pointtype 8 pointsize 0.6 title 'Open MPI, without GASNet', \
  'put_latency-mpich.dat' using 1:($2*1e-6) with linespoints linewidth 1.2 linecolor '#56b4e9' pointtype 10 pointsize 0.6 title 'MPICH, without GASNet', \
  'put_latency-machine.dat' using 1:($2*1e-6) with lines linewidth 1.2 linecolor '#808080' dashtype 2 title 'limit of the machine'
set terminal png size 800,560
set output 'put_latency.png'
plot 'put_latency-cross-mapped.dat' using 1:($2*1e-6) with linespoints linewidth 3.5 linecolor '#0072b2' pointtype 7 pointsize 0.8 title 'libgasnet (ours), cross-mapped', \
  'put_latency-portals.dat' using 1:($2*1e-6) with linespoints linewidth 3.5 linecolor '#d55e00' pointtype 5 pointsize 0.8 title 'libgasnet (ours), through Portals', \
  'put_latency-everything.dat' using 1:($2*1e-6) with linespoints linewidth 3 linecolor '#000000' pointtype 13 pointsize 0.9 title 'libgasnet (ours), EVERYTHING', \
  'put_latency-registered.dat' using 1:($2*1e-6) with linespoints linewidth 3 linecolor '#882255' pointtype 9 pointsize 0.9 title 'libgasnet (ours), LARGE, registered on demand', \
  'put_latency-registered-events.dat' using 1:($2*1e-6) with linespoints linewidth 3 linecolor '#cc6677' dashtype 3 pointtype 5 pointsize 0.9 title 'libgasnet (ours), LARGE, registered on demand, with events', \
  'put_latency-registered-segment.dat' using 1:($2*1e-6) with linespoints linewidth 3 linecolor '#44aa99' pointtype 11 pointsize 0.9 title 'libgasnet (ours), LARGE, registered whole', \
  'put_latency-registered-segment-events.dat' using 1:($2*1e-6) with linespoints linewidth 3 linecolor '#117733' dashtype 3 pointtype 13 pointsize 0.9 title 'libgasnet (ours), LARGE, registered whole, with events', \
  'put_latency-smp.dat' using 1:($2*1e-6) with linespoints linewidth 1.2 linecolor '#009e73' pointtype 4 pointsize 0.6 title 'GASNet, smp-conduit (shared memory)', \
  'put_latency-mpi.dat' using 1:($2*1e-6) with linespoints linewidth 1.2 linecolor '#cc79a7' pointtype 6 pointsize 0.6 title 'GASNet, mpi-conduit (over MPI)', \
  'put_latency-mpi-everything.dat' using 1:($2*1e-6) with linespoints linewidth 1.2 linecolor '#999933' dashtype 3 pointtype 14 pointsize 0.7 title 'GASNet, mpi-conduit, EVERYTHING', \
  'put_latency-openmpi.dat' using 1:($2*1e-6) with linespoints linewidth 1.2 linecolor '#e69f00' pointtype 8 pointsize 0.6 title 'Open MPI, without GASNet', \
  'put_latency-mpich.dat' using 1:($2*1e-6) with linespoints linewidth 1.2 linecolor '#56b4e9' pointtype 10 pointsize 0.6 title 'MPICH, without GASNet', \
  'put_latency-machine.dat' using 1:($2*1e-6) with lines linewidth 1.2 linecolor '#808080' dashtype 2 title 'limit of the machine'

set title 'Puts, 64 in flight, 2 ranks'
set xlabel 'bytes'
set xrange [8/1.2:8388608*1.2]
set xtics ('8' 8, '64' 64, '512' 512, '4K' 4096, '32K' 32768, '256K' 262144, '2M' 2097152, '8M' 8388608)
set ylabel 'bandwidth'
set format y '%.0s %cB/s'
set terminal svg size 800,560
set output 'put_bandwidth.svg'
plot 'put_bandwidth-cross-mapped.dat' using 1:($2*1e6) with linespoints linewidth 3.5 linecolor '#0072b2' pointtype 7 pointsize 0.8 title 'libgasnet (ours), cross-mapped', \
  'put_bandwidth-portals.dat' using 1:($2*1e6) with linespoints linewidth 3.5 linecolor '#d55e00' pointtype 5 pointsize 0.8 title 'libgasnet (ours), through Portals', \
  'put_bandwidth-smp.dat' using 1:($2*1e6) with linespoints linewidth 1.2 linecolor '#009e73' pointtype 4 pointsize 0.6 title 'GASNet, smp-conduit (shared memory)', \
  'put_bandwidth-mpi.dat' using 1:($2*1e6) with linespoints linewidth 1.2 linecolor '#cc79a7' pointtype 6 pointsize 0.6 title 'GASNet, mpi-conduit (over MPI)', \
  'put_bandwidth-openmpi.dat' using 1:($2*1e6) with linespoints linewidth 1.2 linecolor '#e69f00' pointtype 8 pointsize 0.6 title 'Open MPI, without GASNet', \
  'put_bandwidth-mpich.dat' using 1:($2*1e6) with linespoints linewidth 1.2 linecolor '#56b4e9' pointtype 10 pointsize 0.6 title 'MPICH, without GASNet', \
  'put_bandwidth-machine.dat' using 1:($2*1e6) with lines linewidth 1.2 linecolor '#808080' dashtype 2 title 'limit of the machine'
set terminal png size 800,560
set output 'put_bandwidth.png'
plot 'put_bandwidth-cross-mapped.dat' using 1:($2*1e6) with linespoints linewidth 3.5 linecolor '#0072b2' pointtype 7 pointsize 0.8 title 'libgasnet (ours), cross-mapped', \
  'put_bandwidth-portals.dat' using 1:($2*1e6) with linespoints linewidth 3.5 linecolor '#d55e00' pointtype 5 pointsize 0.8 title 'libgasnet (ours), through Portals', \
  'put_bandwidth-smp.dat' using 1:($2*1e6) with linespoints linewidth 1.2 linecolor '#009e73' pointtype 4 pointsize 0.6 title 'GASNet, smp-conduit (shared memory)', \
  'put_bandwidth-mpi.dat' using 1:($2*1e6) with linespoints linewidth 1.2 linecolor '#cc79a7' pointtype 6 pointsize 0.6 title 'GASNet, mpi-conduit (over MPI)', \
  'put_bandwidth-openmpi.dat' using 1:($2*1e6) with linespoints linewidth 1.2 linecolor '#e69f00' pointtype 8 pointsize 0.6 title 'Open MPI, without GASNet', \
  'put_bandwidth-mpich.dat' using 1:($2*1e6) with linespoints linewidth 1.2 linecolor '#56b4e9' pointtype 10 pointsize 0.6 title 'MPICH, without GASNet', \
  'put_bandwidth-machine.dat' using 1:($2*1e6) with lines linewidth 1.2 linecolor '#808080' dashtype 2 title 'limit of the machine'

set title 'Round trip of an AM Medium, 2 ranks'
set xlabel 'bytes'
set xrange [8/1.2:65536*1.2]
set xtics ('8' 8, '64' 64, '512' 512, '4K' 4096, '32K' 32768, '64K' 65536)
set ylabel 'time'
set format y '%.0s %cs'
set terminal svg size 800,560
set output 'medium_trip.svg'
plot 'medium_trip-cross-mapped.dat' using 1:($2*1e-6) with linespoints linewidth 3.5 linecolor '#0072b2' pointtype 7 pointsize 0.8 title 'libgasnet (ours), cross-mapped', \
  'medium_trip-portals.dat' using 1:($2*1e-6) with linespoints linewidth 3.5 linecolor '#d55e00' pointtype 5 pointsize 0.8 title 'libgasnet (ours), through Portals', \
  'medium_trip-smp.dat' using 1:($2*1e-6) with linespoints linewidth 1.2 linecolor '#009e73' pointtype 4 pointsize 0.6 title 'GASNet, smp-conduit (shared memory)', \
  'medium_trip-mpi.dat' using 1:($2*1e-6) with linespoints linewidth 1.2 linecolor '#cc79a7' pointtype 6 pointsize 0.6 title 'GASNet, mpi-conduit (over MPI)', \
  'medium_trip-machine.dat' using 1:($2*1e-6) with lines linewidth 1.2 linecolor '#808080' dashtype 2 title 'limit of the machine'
set terminal png size 800,560
set output 'medium_trip.png'
plot 'medium_trip-cross-mapped.dat' using 1:($2*1e-6) with linespoints linewidth 3.5 linecolor '#0072b2' pointtype 7 pointsize 0.8 title 'libgasnet (ours), cross-mapped', \
  'medium_trip-portals.dat' using 1:($2*1e-6) with linespoints linewidth 3.5 linecolor '#d55e00' pointtype 5 pointsize 0.8 title 'libgasnet (ours), through Portals', \
  'medium_trip-smp.dat' using 1:($2*1e-6) with linespoints linewidth 1.2 linecolor '#009e73' pointtype 4 pointsize 0.6 title 'GASNet, smp-conduit (shared memory)', \
  'medium_trip-mpi.dat' using 1:($2*1e-6) with linespoints linewidth 1.2 linecolor '#cc79a7' pointtype 6 pointsize 0.6 title 'GASNet, mpi-conduit (over MPI)', \
  'medium_trip-machine.dat' using 1:($2*1e-6) with lines linewidth 1.2 linecolor '#808080' dashtype 2 title 'limit of the machine'

set title 'Anonymous barrier'
set xlabel 'ranks'
set xrange [2/1.2:8*1.2]
set xtics ('2' 2, '4' 4, '8' 8)
set ylabel 'time'
set format y '%.0s %cs'
set terminal svg size 800,560
set output 'barrier.svg'
plot 'barrier-cross-mapped.dat' using 1:($2*1e-6) with linespoints linewidth 3.5 linecolor '#0072b2' pointtype 7 pointsize 0.8 title 'libgasnet (ours), cross-mapped', \
  'barrier-portals.dat' using 1:($2*1e-6) with linespoints linewidth 3.5 linecolor '#d55e00' pointtype 5 pointsize 0.8 title 'libgasnet (ours), through Portals', \
  'barrier-block.dat' using 1:($2*1e-6) with linespoints linewidth 3 linecolor '#0072b2' dashtype 3 pointtype 9 pointsize 0.9 title 'libgasnet (ours), ranks block', \
  'barrier-smp.dat' using 1:($2*1e-6) with linespoints linewidth 1.2 linecolor '#009e73' pointtype 4 pointsize 0.6 title 'GASNet, smp-conduit (shared memory)', \
  'barrier-mpi.dat' using 1:($2*1e-6) with linespoints linewidth 1.2 linecolor '#cc79a7' pointtype 6 pointsize 0.6 title 'GASNet, mpi-conduit (over MPI)', \
  'barrier-smp-block.dat' using 1:($2*1e-6) with linespoints linewidth 1.2 linecolor '#009e73' dashtype 3 pointtype 12 pointsize 0.7 title 'GASNet, smp-conduit, ranks block', \
  'barrier-openmpi.dat' using 1:($2*1e-6) with linespoints linewidth 1.2 linecolor '#e69f00' pointtype 8 pointsize 0.6 title 'Open MPI, without GASNet', \
  'barrier-mpich.dat' using 1:($2*1e-6) with linespoints linewidth 1.2 linecolor '#56b4e9' pointtype 10 pointsize 0.6 title 'MPICH, without GASNet'
set terminal png size 800,560
set output 'barrier.png'
plot 'barrier-cross-mapped.dat' using 1:($2*1e-6) with linespoints linewidth 3.5 linecolor '#0072b2' pointtype 7 pointsize 0.8 title 'libgasnet (ours), cross-mapped', \
  'barrier-portals.dat' using 1:($2*1e-6) with linespoints linewidth 3.5 linecolor '#d55e00' pointtype 5 pointsize 0.8 title 'libgasnet (ours), through Portals', \
  'barrier-block.dat' using 1:($2*1e-6) with linespoints linewidth 3 linecolor '#0072b2' dashtype 3 pointtype 9 pointsize 0.9 title 'libgasnet (ours), ranks block', \
  'barrier-smp.dat' using 1:($2*1e-6) with linespoints linewidth 1.2 linecolor '#009e73' pointtype 4 pointsize 0.6 title 'GASNet, smp-conduit (shared memory)', \
  'barrier-mpi.dat' using 1:($2*1e-6) with linespoints linewidth 1.2 linecolor '#cc79a7' pointtype 6 pointsize 0.6 title 'GASNet, mpi-conduit (over MPI)', \
  'barrier-smp-block.dat' using 1:($2*1e-6) with linespoints linewidth 1.2 linecolor '#009e73' dashtype 3 pointtype 12 pointsize 0.7 title 'GASNet, smp-conduit, ranks block', \
  'barrier-openmpi.dat' using 1:($2*1e-6) with linespoints linewidth 1.2 linecolor '#e69f00' pointtype 8 pointsize 0.6 title 'Open MPI, without GASNet', \
  'barrier-mpich.dat' using 1:($2*1e-6) with linespoints linewidth 1.2 linecolor '#56b4e9' pointtype 10 pointsize 0.6 title 'MPICH, without GASNet'

set title 'Start and end of a job'
set xlabel 'ranks'
set xrange [1/1.2:64*1.2]
set xtics ('1' 1, '2' 2, '4' 4, '8' 8, '16' 16, '32' 32, '64' 64)
set ylabel 'time'
set format y '%.0s %cs'
set terminal svg size 800,560
set output 'startup.svg'
plot 'startup-cross-mapped.dat' using 1:($2*1e-3) with linespoints linewidth 3.5 linecolor '#0072b2' pointtype 7 pointsize 0.8 title 'libgasnet (ours), cross-mapped', \
  'startup-portals.dat' using 1:($2*1e-3) with linespoints linewidth 3.5 linecolor '#d55e00' pointtype 5 pointsize 0.8 title 'libgasnet (ours), through Portals', \
  'startup-smp.dat' using 1:($2*1e-3) with linespoints linewidth 1.2 linecolor '#009e73' pointtype 4 pointsize 0.6 title 'GASNet, smp-conduit (shared memory)', \
  'startup-mpi.dat' using 1:($2*1e-3) with linespoints linewidth 1.2 linecolor '#cc79a7' pointtype 6 pointsize 0.6 title 'GASNet, mpi-conduit (over MPI)'
set terminal png size 800,560
set output 'startup.png'
plot 'startup-cross-mapped.dat' using 1:($2*1e-3) with linespoints linewidth 3.5 linecolor '#0072b2' pointtype 7 pointsize 0.8 title 'libgasnet (ours), cross-mapped', \
  'startup-portals.dat' using 1:($2*1e-3) with linespoints linewidth 3.5 linecolor '#d55e00' pointtype 5 pointsize 0.8 title 'libgasnet (ours), through Portals', \
  'startup-smp.dat' using 1:($2*1e-3) with linespoints linewidth 1.2 linecolor '#009e73' pointtype 4 pointsize 0.6 title 'GASNet, smp-conduit (shared memory)', \
  'startup-mpi.dat' using 1:($2*1e-3) with linespoints linewidth 1.2 linecolor '#cc79a7' pointtype 6 pointsize 0.6 title 'GASNet, mpi-conduit (over MPI)'
