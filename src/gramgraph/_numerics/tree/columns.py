"""The columns and sections of a tree program: `tree_program` writes them, the runner reads them."""

# columns of `cliques`
(C_OFF, C_SIZE, C_SEP, C_SEP_SIZE, C_PARENT, C_STATIC, C_TERM, C_TERM_END, C_MAP) = range(9)
C_COLUMNS = 9
# columns of `terms`: where the numbers come from, and the index map at MAP … MAP + 5
(T_KIND, T_SOURCE, T_SIZE, T_MAP, T_MEMBER, T_MEMBER_END) = range(6)
T_COLUMNS = 6
# kinds of term
SEPARATOR, SLICE, LIKELIHOOD, COMBINED = range(4)
# columns of `members` of a combined term: kind, source (and variable slot, for a likelihood)
M_COLUMNS = 2
# columns of `maps_table`: hi_off, n_hi, lo_off, n_lo, inner, shared
MAP_COLUMNS = 6
# columns of `slices`: base, length, buffer offset, offsets in maps, first key, last key + 1
(S_BASE, S_LENGTH, S_BUFFER, S_OFFSETS, S_KEY, S_KEY_END) = range(6)
S_COLUMNS = 6
# columns of `outputs`: 0 = clique / 1 = separator, clique, map row, first column, number of columns
(O_FROM, O_CLIQUE, O_MAP, O_COLUMN, O_WIDTH) = range(5)
O_COLUMNS = 5

#: The program is one array of integers: first where each section begins (and where the last one ends), then the
#: sections. One array crosses from Python into compiled code much faster than twenty.
(
    P_COLLECT, P_DISTRIBUTE, P_ROOTS, P_NEEDED, P_CLIQUES, P_TERMS, P_MEMBERS, P_MAPS_TABLE, P_MAPS, P_SLICES, P_KEYS,
    P_CONSTANTS, P_OUTPUTS, P_ONEHOT, P_MASK_OFFSET, P_MASK_HOME, P_CLIQUE_PTR, P_ORDERED, P_N_SEP, P_SIZES, P_TOPO,
    P_WORK,
) = range(22)  # fmt: skip
N_SECTIONS = 22
#: Buffers of the runner, in order; the section P_WORK holds their lengths for one lane.
(
    W_TABLES, W_SEPARATORS, W_BELIEFS, W_SLICES, W_LIKELIHOOD, W_COMBINED, W_EXPONENTS, W_ACTIVE, W_SPILL, W_TOTALS,
    W_SCRATCH,
) = range(11)  # fmt: skip
