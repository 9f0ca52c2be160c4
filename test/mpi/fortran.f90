! Called by fortran.sh: waiting calls from Fortran while the runtime has other threads. USE_F08: by mpi_f08, else by mpi.
! The main thread and a thread of C, which calls back, exchange words with the other rank.
module work
#ifdef USE_F08
	use mpi_f08
#else
	use mpi
#endif
	use iso_c_binding
	implicit none
	integer :: rank, peer
	interface
		subroutine run_threads(f) bind(c)
			import :: c_funptr
			type(c_funptr), value :: f
		end subroutine
	end interface
contains
	subroutine exchange(id) bind(c)
		integer(c_int), value :: id
		integer :: out, in, i, ierr, total
#ifdef USE_F08
		type(MPI_Status) :: status
		type(MPI_Request) :: request
		type(MPI_Comm) :: mine
#else
		integer :: status(MPI_STATUS_SIZE), request, mine
#endif
		do i = 1, 50
			out = id * 1000 + i
			in = -1
			if (rank == 0) then
				call MPI_Send(out, 1, MPI_INTEGER, peer, id, MPI_COMM_WORLD, ierr)
				call MPI_Recv(in, 1, MPI_INTEGER, peer, id, MPI_COMM_WORLD, status, ierr)
			else
				call MPI_Recv(in, 1, MPI_INTEGER, peer, id, MPI_COMM_WORLD, status, ierr)
				call MPI_Ssend(out, 1, MPI_INTEGER, peer, id, MPI_COMM_WORLD, ierr)
			end if
			if (in /= out .or. ierr /= MPI_SUCCESS) stop 1
#ifdef USE_F08
			if (status%MPI_TAG /= id .or. status%MPI_SOURCE /= peer) stop 2
#else
			if (status(MPI_TAG) /= id .or. status(MPI_SOURCE) /= peer) stop 2
#endif
			in = -1
			call MPI_Irecv(in, 1, MPI_INTEGER, peer, 100 + id, MPI_COMM_WORLD, request, ierr)
			call MPI_Send(out, 1, MPI_INTEGER, peer, 100 + id, MPI_COMM_WORLD, ierr)
			call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
			if (in /= out) stop 3
			if (request /= MPI_REQUEST_NULL) stop 4
		end do
		if (id == 0) then
			total = rank + 1
			call MPI_Comm_dup(MPI_COMM_WORLD, mine, ierr)
			call MPI_Allreduce(MPI_IN_PLACE, total, 1, MPI_INTEGER, MPI_SUM, mine, ierr)
			if (total /= 3) stop 5
			call MPI_Comm_free(mine, ierr)
		end if
	end subroutine
end module

program fortran
	use work
	integer :: ierr, provided
	call MPI_Init_thread(MPI_THREAD_MULTIPLE, provided, ierr)
	if (provided /= MPI_THREAD_MULTIPLE) stop 6
	call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
	peer = 1 - rank
	call run_threads(c_funloc(exchange))
	call exchange(30)
	call MPI_Finalize(ierr)
	print *, 'right'
end program
