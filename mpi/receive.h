/* mpi/receive.h - the calls that have a buffer to receive into, once for counts of int and once for
 * MPI_Count. Included by call.c with C(name), a name with or without _c, and COUNT. */
#define OURS_(name) PMPI_##name
#define OURS(name) OURS_(name)
#define PLAIN_(name) MPI_##name
#define PLAIN(name) PLAIN_(name)
#define TEXT_(name) #name
#define TEXT(name) TEXT_(name)
#define ALIAS(name) __attribute__((alias(TEXT(OURS(name)))))

/* Receives. A receive from MPI_PROC_NULL goes straight: MPI does not wait then, and some MPIs do
 * not report it correctly from a non-blocking call. */
KBM_API int OURS(C(Recv))(void *buf, COUNT n, MPI_Datatype type, int source, int tag, MPI_Comm comm,
			  MPI_Status *status)
{
	MPI_Request request;
	int e;

	if (kbm_straight() || source == MPI_PROC_NULL)
		return kbm_real.C(Recv)(buf, n, type, source, tag, comm, status);
	if (tells_world()) {
		/* wrong arguments are reported now, not only when a message is there */
		e = kbm_real.C(Recv)(buf, n, type, MPI_PROC_NULL, tag, comm, MPI_STATUS_IGNORE);
		if (!e)
			e = await_message(source, tag, comm, "MPI_Recv");
		return e ? e : kbm_real.C(Recv)(buf, n, type, source, tag, comm, status);
	}
	e = kbm_real.C(Irecv)(buf, n, type, source, tag, comm, &request);
	return e ? e : finish_receive(&request, status, "MPI_Recv", source, tag, comm);
}

KBM_API int OURS(C(Mrecv))(void *buf, COUNT n, MPI_Datatype type, MPI_Message *message,
			   MPI_Status *status)
{
	MPI_Request request;
	int e;

	if (kbm_straight() || *message == MPI_MESSAGE_NO_PROC)
		return kbm_real.C(Mrecv)(buf, n, type, message, status);
	e = kbm_real.C(Imrecv)(buf, n, type, message, &request);
	return e ? e : kbm_finish(&request, status, "MPI_Mrecv");
}

KBM_API int OURS(C(Sendrecv))(const void *from, COUNT n, MPI_Datatype type, int dest, int tag,
			      void *to, COUNT m, MPI_Datatype as, int source, int tag_in,
			      MPI_Comm comm, MPI_Status *status)
{
	MPI_Request in, out;
	int e, e_out;

	if (kbm_straight())
		return kbm_real.C(Sendrecv)(from, n, type, dest, tag, to, m, as, source, tag_in,
					    comm, status);
	if (source == MPI_PROC_NULL || tells_world()) {
		e = kbm_real.C(Isend)(from, n, type, dest, tag, comm, &out);
		if (e)
			return e;
		e = OURS(C(Recv))(to, m, as, source, tag_in, comm, status);
		e_out = kbm_finish(&out, MPI_STATUS_IGNORE, "MPI_Sendrecv");
		return e ? e : e_out;
	}
	e = kbm_real.C(Irecv)(to, m, as, source, tag_in, comm, &in);
	if (e)
		return e;
	e = kbm_real.C(Isend)(from, n, type, dest, tag, comm, &out);
	if (e) {
		kbm_real.Cancel(&in);
		kbm_real.Request_free(&in);
		return e;
	}
	e = finish_receive(&in, status, "MPI_Sendrecv", source, tag_in, comm);
	e_out = kbm_finish(&out, MPI_STATUS_IGNORE, "MPI_Sendrecv");
	return e ? e : e_out;
}

/* Sends a packed copy, so that the buffer is free to receive into. */
KBM_API int OURS(C(Sendrecv_replace))(void *buf, COUNT n, MPI_Datatype type, int dest, int tag,
				      int source, int tag_in, MPI_Comm comm, MPI_Status *status)
{
	COUNT bytes = 0, at = 0;
	void *copy = NULL;
	int e;

	if (kbm_straight())
		return kbm_real.C(Sendrecv_replace)(buf, n, type, dest, tag, source, tag_in, comm,
						    status);
	if (dest != MPI_PROC_NULL) {
		e = kbm_real.C(Pack_size)(n, type, comm, &bytes);
		copy = e ? NULL : malloc(bytes ? (size_t)bytes : 1);
		if (!e && !copy)
			return kbm_real.C(Sendrecv_replace)(buf, n, type, dest, tag, source, tag_in,
							    comm, status);
		if (!e)
			e = kbm_real.C(Pack)(buf, n, type, copy, bytes, &at, comm);
		if (e) {
			free(copy);
			return e;
		}
	}
	e = OURS(C(Sendrecv))(copy, at, MPI_PACKED, dest, tag, buf, n, type, source, tag_in, comm,
			      status);
	free(copy);
	return e;
}

KBM_API int PLAIN(C(Recv))(void *, COUNT, MPI_Datatype, int, int, MPI_Comm, MPI_Status *)
	ALIAS(C(Recv));
KBM_API int PLAIN(C(Mrecv))(void *, COUNT, MPI_Datatype, MPI_Message *, MPI_Status *)
	ALIAS(C(Mrecv));
KBM_API int PLAIN(C(Sendrecv))(const void *, COUNT, MPI_Datatype, int, int, void *, COUNT,
			       MPI_Datatype, int, int, MPI_Comm, MPI_Status *) ALIAS(C(Sendrecv));
KBM_API int PLAIN(C(Sendrecv_replace))(void *, COUNT, MPI_Datatype, int, int, int, int, MPI_Comm,
				       MPI_Status *) ALIAS(C(Sendrecv_replace));

#undef OURS_
#undef OURS
#undef PLAIN_
#undef PLAIN
#undef TEXT_
#undef TEXT
#undef ALIAS
