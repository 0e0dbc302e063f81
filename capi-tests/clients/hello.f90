! A Fortran client by means of iso_c_binding: every process puts its rank into the segment of the
! next one. With the argument hang, it says so and computes forever after gasnet_attach.
module gasnet
  use iso_c_binding
  implicit none
  type, bind(c) :: gasnet_seginfo_t
    type(c_ptr) :: addr
    integer(c_intptr_t) :: bytes
  end type
  interface
    integer(c_int) function gasnet_init(argc, argv) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: argc, argv
    end function
    integer(c_int) function gasnet_attach(table, n, segsize, minheapoffset) bind(c)
      import :: c_int, c_ptr, c_intptr_t
      type(c_ptr), value :: table
      integer(c_int), value :: n
      integer(c_intptr_t), value :: segsize, minheapoffset
    end function
    integer(c_int32_t) function gasnet_mynode() bind(c)
      import :: c_int32_t
    end function
    integer(c_int32_t) function gasnet_nodes() bind(c)
      import :: c_int32_t
    end function
    integer(c_int) function gasnet_getSegmentInfo(table, n) bind(c, name="gasnet_getSegmentInfo")
      import :: c_int, gasnet_seginfo_t
      type(gasnet_seginfo_t) :: table(*)
      integer(c_int), value :: n
    end function
    subroutine gasnet_put(node, dest, src, bytes) bind(c)
      import :: c_int32_t, c_ptr, c_size_t
      integer(c_int32_t), value :: node
      type(c_ptr), value :: dest, src
      integer(c_size_t), value :: bytes
    end subroutine
    subroutine gasnet_barrier_notify(id, flags) bind(c)
      import :: c_int
      integer(c_int), value :: id, flags
    end subroutine
    integer(c_int) function gasnet_barrier_wait(id, flags) bind(c)
      import :: c_int
      integer(c_int), value :: id, flags
    end function
    subroutine gasnet_exit(code) bind(c)
      import :: c_int
      integer(c_int), value :: code
    end subroutine
  end interface
contains
  subroutine barrier()
    integer(c_int) :: rc
    call gasnet_barrier_notify(0, 1)
    rc = gasnet_barrier_wait(0, 1)
    if (rc /= 0) call gasnet_exit(3)
  end subroutine
end module

program hello
  use gasnet
  type(gasnet_seginfo_t), allocatable :: segments(:)
  integer(c_int32_t), target :: me
  integer(c_int32_t), pointer :: mine
  integer(c_int32_t) :: nodes, next
  character(len=8) :: word
  integer, volatile :: rounds = 0
  if (gasnet_init(c_null_ptr, c_null_ptr) /= 0) stop 1
  if (gasnet_attach(c_null_ptr, 0, 65536_c_intptr_t, 0_c_intptr_t) /= 0) stop 1
  call get_command_argument(1, word)
  if (word == 'hang') print '(a)', 'computes'
  flush(6)
  do while (word == 'hang')
    rounds = ieor(rounds, 1)
  end do
  me = gasnet_mynode()
  nodes = gasnet_nodes()
  allocate(segments(nodes))
  if (gasnet_getSegmentInfo(segments, nodes) /= 0) stop 1
  next = mod(me + 1, nodes)
  call gasnet_put(next, segments(next + 1)%addr, c_loc(me), 4_c_size_t)
  call barrier()
  call c_f_pointer(segments(me + 1)%addr, mine)
  if (mine /= mod(me + nodes - 1, nodes)) call gasnet_exit(2)
  call barrier()
  if (me == 0) print '(a,i0,a)', 'PASS with ', nodes, ' processes'
  flush(6)
  call gasnet_exit(0)
end program
