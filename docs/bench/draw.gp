# Written by `make bench`; the data files are in the same folder.
set logscale xy
set key left top
set grid

set title 'blocking put, 2 processes'
set xlabel 'bytes'
set ylabel 'Latency (us)'
set terminal svg size 720,480
set output 'put_latency.svg'
plot 'put_latency-machine.dat' using 1:2 with lines dashtype 2 title 'machine', 'put_latency-cross-mapped.dat' using 1:2 with linespoints title 'cross-mapped', 'put_latency-portals.dat' using 1:2 with linespoints title 'portals', 'put_latency-smp.dat' using 1:2 with linespoints title 'smp', 'put_latency-mpi.dat' using 1:2 with linespoints title 'mpi', 'put_latency-openmpi.dat' using 1:2 with linespoints title 'openmpi', 'put_latency-mpich.dat' using 1:2 with linespoints title 'mpich'
set terminal png size 720,480
set output 'put_latency.png'
plot 'put_latency-machine.dat' using 1:2 with lines dashtype 2 title 'machine', 'put_latency-cross-mapped.dat' using 1:2 with linespoints title 'cross-mapped', 'put_latency-portals.dat' using 1:2 with linespoints title 'portals', 'put_latency-smp.dat' using 1:2 with linespoints title 'smp', 'put_latency-mpi.dat' using 1:2 with linespoints title 'mpi', 'put_latency-openmpi.dat' using 1:2 with linespoints title 'openmpi', 'put_latency-mpich.dat' using 1:2 with linespoints title 'mpich'

set title 'puts, 64 in flight, 2 processes'
set xlabel 'bytes'
set ylabel 'Bandwidth (MB/s)'
set terminal svg size 720,480
set output 'put_bandwidth.svg'
plot 'put_bandwidth-machine.dat' using 1:2 with lines dashtype 2 title 'machine', 'put_bandwidth-cross-mapped.dat' using 1:2 with linespoints title 'cross-mapped', 'put_bandwidth-portals.dat' using 1:2 with linespoints title 'portals', 'put_bandwidth-smp.dat' using 1:2 with linespoints title 'smp', 'put_bandwidth-mpi.dat' using 1:2 with linespoints title 'mpi', 'put_bandwidth-openmpi.dat' using 1:2 with linespoints title 'openmpi', 'put_bandwidth-mpich.dat' using 1:2 with linespoints title 'mpich'
set terminal png size 720,480
set output 'put_bandwidth.png'
plot 'put_bandwidth-machine.dat' using 1:2 with lines dashtype 2 title 'machine', 'put_bandwidth-cross-mapped.dat' using 1:2 with linespoints title 'cross-mapped', 'put_bandwidth-portals.dat' using 1:2 with linespoints title 'portals', 'put_bandwidth-smp.dat' using 1:2 with linespoints title 'smp', 'put_bandwidth-mpi.dat' using 1:2 with linespoints title 'mpi', 'put_bandwidth-openmpi.dat' using 1:2 with linespoints title 'openmpi', 'put_bandwidth-mpich.dat' using 1:2 with linespoints title 'mpich'

set title 'AM Medium, 2 processes'
set xlabel 'bytes'
set ylabel 'Round trip (us)'
set terminal svg size 720,480
set output 'medium_trip.svg'
plot 'medium_trip-machine.dat' using 1:2 with lines dashtype 2 title 'machine', 'medium_trip-cross-mapped.dat' using 1:2 with linespoints title 'cross-mapped', 'medium_trip-portals.dat' using 1:2 with linespoints title 'portals', 'medium_trip-smp.dat' using 1:2 with linespoints title 'smp', 'medium_trip-mpi.dat' using 1:2 with linespoints title 'mpi'
set terminal png size 720,480
set output 'medium_trip.png'
plot 'medium_trip-machine.dat' using 1:2 with lines dashtype 2 title 'machine', 'medium_trip-cross-mapped.dat' using 1:2 with linespoints title 'cross-mapped', 'medium_trip-portals.dat' using 1:2 with linespoints title 'portals', 'medium_trip-smp.dat' using 1:2 with linespoints title 'smp', 'medium_trip-mpi.dat' using 1:2 with linespoints title 'mpi'

set title 'anonymous barrier'
set xlabel 'processes'
set ylabel 'Time (us)'
set terminal svg size 720,480
set output 'barrier.svg'
plot 'barrier-cross-mapped.dat' using 1:2 with linespoints title 'cross-mapped', 'barrier-portals.dat' using 1:2 with linespoints title 'portals', 'barrier-smp.dat' using 1:2 with linespoints title 'smp', 'barrier-mpi.dat' using 1:2 with linespoints title 'mpi'
set terminal png size 720,480
set output 'barrier.png'
plot 'barrier-cross-mapped.dat' using 1:2 with linespoints title 'cross-mapped', 'barrier-portals.dat' using 1:2 with linespoints title 'portals', 'barrier-smp.dat' using 1:2 with linespoints title 'smp', 'barrier-mpi.dat' using 1:2 with linespoints title 'mpi'

set title 'start and end of a job'
set xlabel 'processes'
set ylabel 'Time (ms)'
set terminal svg size 720,480
set output 'startup.svg'
plot 'startup-cross-mapped.dat' using 1:2 with linespoints title 'cross-mapped', 'startup-portals.dat' using 1:2 with linespoints title 'portals', 'startup-smp.dat' using 1:2 with linespoints title 'smp', 'startup-mpi.dat' using 1:2 with linespoints title 'mpi'
set terminal png size 720,480
set output 'startup.png'
plot 'startup-cross-mapped.dat' using 1:2 with linespoints title 'cross-mapped', 'startup-portals.dat' using 1:2 with linespoints title 'portals', 'startup-smp.dat' using 1:2 with linespoints title 'smp', 'startup-mpi.dat' using 1:2 with linespoints title 'mpi'
