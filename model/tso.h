/* model/tso.h - memory as x86 has it (total store order): each processor has a first-in-first-out buffer of stores,
 * which others do not see and itself does; a fence waits until it is empty, a read-modify-write is one.
 * Before the include: WORDS, CPUS, DEPTH (stores that a buffer holds). All words begin as 0.
 * Weaker machines have all this and the order that acquire and release give them. With -DDISORDER the buffer is
 * emptied in any order, word by word: what plain stores instead of releases would mean there. */
byte mem[WORDS];
byte pend[CPUS * WORDS]; /* stores of this word in the buffer */
byte last[CPUS * WORDS]; /* the youngest of them */
chan buf[CPUS] = [DEPTH] of { byte, byte };

#define LOAD(c, a) (pend[(c) * WORDS + (a)] -> last[(c) * WORDS + (a)] : mem[a])
#define DRAINED(c) (len(buf[c]) == 0)

inline store(c, a, v)
{
	atomic {
		nfull(buf[c]);
		buf[c]!(a), (v);
		last[(c) * WORDS + (a)] = v;
		pend[(c) * WORDS + (a)]++
	}
}

inline fence(c)
{
	DRAINED(c)
}

/* old = exchange(word a, v) */
inline exchange(c, a, v, old)
{
	atomic {
		DRAINED(c);
		old = mem[a];
		mem[a] = v
	}
}

/* ok = compare-and-swap(word a, from, to) */
inline cas(c, a, from, to, ok)
{
	atomic {
		DRAINED(c);
		ok = (mem[a] == (from));
		if
		:: ok -> mem[a] = to
		:: else
		fi
	}
}

inline landed(c, a, v)
{
	mem[a] = v;
	pend[(c) * WORDS + (a)]--;
	if
	:: pend[(c) * WORDS + (a)] == 0 -> last[(c) * WORDS + (a)] = 0
	:: else
	fi
}

proctype drain(byte c)
{
	byte a, v;
end:	do
	:: atomic { buf[c]?a, v -> landed(c, a, v); a = 0; v = 0 }
#ifdef DISORDER
	:: atomic {
		len(buf[c]) > 1 ->
		a = 0;
		do
		:: a < WORDS && pend[c * WORDS + a] == 1 && buf[c]??[eval(a), _] -> break
		:: a < WORDS - 1 -> a++
		:: else -> break
		od;
		if
		:: buf[c]??[eval(a), _] -> buf[c]??eval(a), v; landed(c, a, v)
		:: else
		fi;
		a = 0; v = 0
	   }
#endif
	od
}
