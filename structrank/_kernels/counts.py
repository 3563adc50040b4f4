"""Most violated rankings of queries with graded labels, for phi_po and losses of the top k: a lattice over counts of grades.

phi_po weights each pair of documents of different grades by 1 / N, with N the number of such pairs of the query. Two exchange
arguments leave few rankings:

- Swapping two documents of one grade into the order of their scores never lowers w.phi and does not change the loss. So each
  grade is in order of score.
- From rank k on the loss does not change, and every pair prefers the order of the scores. So the ranks from k on, the tail,
  are in order of score.

A ranking is thus a sequence of grades in the top k, a path through the counts c_0, c_1, ... of documents of each grade placed
so far. Placing the next document i of grade g at rank r adds

    2 / N sum over grades h above g of [(n_h - c_h) s_i - sum of the scores of grade h from c_h on]  -  the credit of i at r,

the first part for the pairs that it passes. Every count vector of sum k has one best tail, whose value is a sum over pairs of
grades (a, b) of tables of (c_a, c_b). The credit is ``gain_g discount_r``, divided by that of the ideal ranking, times the
probability that a reader gets to rank r: 1, or for a cascade (ERR), where a reader stops at a document with probability gain, a
product over the documents above, which depends on their counts alone.

States with equal counts of all grades but the three lowest form a *block*; the counts c_0, c_1, c_2 are a *cell* of it. Cells
are in order of their sum and have the same number in every block, so that a step to another block is a vectorised loop. Blocks
are in lexicographic order with the count of the highest grade first, so that terms of higher grades are updated rarely, and
the blocks of a query with fewer grades are the first blocks.

Queries are sorted by decreasing score, tied documents by decreasing grade.
"""

import numpy as np

from structrank._support.compile import kernel

_INNER = 3  # grades whose counts are a cell
# Rows with numbers of each cell: for the step of each inner grade into it score, value and chance; then its chance and tail.
_KEYS, _VALUES, _CHANCES, _CHANCE, _TAIL, _OF_CELLS = 0, 3, 6, 9, 10, 11


def make_lattice(n_grades, k, discount):
    """Enumerate blocks and cells, once for all queries; in Python, as compiling takes longer than the largest lattice.

    Parameters
    ----------
    n_grades : int
        Grades of the query with the most grades.
    k : int
        Cutoff, at most the length of the longest query.
    discount : (k,) array or longer

    Returns
    -------
    sizes, firsts, previous : arrays
        Of blocks: ``sizes[g, left]``, the number of blocks that differ in the counts of grades up to g, if higher grades leave
        `left` ranks; ``firsts[block]``, the state of the first cell; ``previous[block, g]``, the block with one document less
        of g.
    ends, counts, sources, discounts : arrays
        Of cells: ``ends[left]``, the number of cells of a sum up to `left`; ``counts[g, cell]``; ``sources[g, cell]``, the cell
        with one document less of grade g (itself if there is none); ``discounts[placed, cell]``, the discount of the last
        document of the top if the block has `placed` documents.
    """
    n_inner = min(n_grades, _INNER)
    ends = np.empty(k + 2, np.int64)
    number = np.zeros((k + 1, k + 1, k + 1 if n_inner == _INNER else 1), np.int32)
    n_cells = 0
    for layer in range(k + 1):
        for c_2 in range(layer + 1 if n_inner == _INNER else 1):
            for c_1 in range(layer - c_2 + 1):
                number[layer - c_2 - c_1, c_1, c_2] = n_cells
                n_cells += 1
        ends[layer] = n_cells
    counts, sources = np.empty((_INNER, n_cells), np.int32), np.empty((_INNER, n_cells), np.int32)
    for layer in range(k + 1):
        for c_2 in range(layer + 1 if n_inner == _INNER else 1):
            for c_1 in range(layer - c_2 + 1):
                c_0 = layer - c_2 - c_1
                cell = number[c_0, c_1, c_2]
                counts[0, cell], counts[1, cell], counts[2, cell] = c_0, c_1, c_2
                sources[0, cell] = number[c_0 - 1, c_1, c_2] if c_0 > 0 else cell
                sources[1, cell] = number[c_0, c_1 - 1, c_2] if c_1 > 0 else cell
                sources[2, cell] = number[c_0, c_1, c_2 - 1] if c_2 > 0 else cell
    discounts = np.zeros((k + 1 if n_grades > _INNER else 1, n_cells))
    last = counts.sum(axis=0) - 1
    for placed in range(discounts.shape[0]):
        ranks = placed + last[: ends[k - placed]]
        discounts[placed, : ranks.shape[0]] = np.where(ranks >= 0, discount[ranks], 0.0)
    return *_make_blocks(n_grades, k, ends), ends, counts, sources, discounts


def _make_blocks(n_grades, k, ends):
    sizes = np.ones((max(n_grades, _INNER), k + 2), np.int64)
    for g in range(_INNER, n_grades):
        for left in range(1, k + 2):
            sizes[g, left] = sizes[g - 1, left] + sizes[g, left - 1]
    n_blocks = sizes[-1, k]
    firsts = np.empty(n_blocks + 1, np.int64)
    previous = np.zeros((n_blocks, n_grades), np.int32)
    counts = np.zeros(n_grades + 1, np.int64)
    left = np.full(max(n_grades, _INNER) + 1, k)  # ranks that the grades from g on leave to lower grades
    starts = np.zeros(n_grades + 1, np.int64)  # first block with these counts of the grades from g on
    firsts[0] = 0
    for block in range(n_blocks):
        firsts[block + 1] = firsts[block] + ends[left[_INNER]]
        for g in range(_INNER, n_grades):
            if counts[g] > 0:
                before = starts[g + 1] + sizes[g, left[g + 1]] - sizes[g, left[g] + 1]
                for h in range(g - 1, _INNER - 1, -1):
                    before += sizes[h, left[h + 1] + 1] - sizes[h, left[h] + 1]
                previous[block, g] = before
        g = _INNER
        while g < n_grades and left[g] == 0:
            g += 1
        if g < n_grades:
            counts[g] += 1
            left[g] -= 1
            starts[g] = block + 1
            for h in range(g - 1, _INNER - 1, -1):
                counts[h], left[h], starts[h] = 0, left[g], block + 1
    return sizes, firsts, previous


@kernel(inner=True)
def _make_workspace(longest, n_grades, k, n_cells, n_states):
    """Allocate the arrays that queries share; all have two dimensions, as each number of dimensions would be compiled."""
    n, width = max(n_grades, _INNER) + 1, k + 1
    documents = np.empty((2, longest + n)), np.empty((1, longest), np.int64)
    by_grade, above = np.empty((6, n), np.int64), np.empty((n * width, n), np.int64)
    tails, tail_sums = np.empty((n * width, n * width)), np.empty((n, n * width))
    levels, powers = np.empty((5, n)), np.empty((n, width))
    by_cell = np.empty((_OF_CELLS, n_cells))
    # Without a cascade readers get everywhere. Steps that do not exist have a finite score.
    for g in range(n):
        for c in range(width):
            powers[g, c] = 1.0
    for row in range(_OF_CELLS):
        for cell in range(n_cells):
            by_cell[row, cell] = 1.0
    return documents, by_grade, above, tails, tail_sums, levels, powers, by_cell, np.empty((1, n_states))


@kernel(inner=True)
def ideal_credit(counts, n_grades, gains, first, discount, k, cascade):
    """Compute the credit of the ideal ranking, by decreasing grade, in the top k.

    ``counts[0, g]`` is the number of documents of grade g, ``gains[first + g]`` its gain.
    """
    credit, reach, rank = 0.0, 1.0, 0
    for g in range(n_grades - 1, -1, -1):
        gain = gains[first + g]
        for _ in range(min(counts[0, g], k - rank)):
            credit += gain * discount[rank] * reach
            if cascade:
                reach *= 1.0 - gain
            rank += 1
    return credit


@kernel(inner=True)
def _sort_into_grades(scores, grades, start, stop, n_grades, k, documents, by_grade, above, tails):
    """List the documents of each grade by score, with what the tail needs; scores are multiplied by 2 / N.

    ``above[g * (k + 1) + c, h]`` counts the documents of grade h with a higher score than the c-th of grade g (of equal score:
    if h is higher). The first entry of the table of grades a > b in `tails` is the value of their pairs in order of score.
    """
    keys, sums, members = documents[0][0], documents[0][1], documents[1][0]
    counts, begins, seen = by_grade[0], by_grade[1], by_grade[2]
    width = above.shape[0] // above.shape[1]
    for g in range(counts.shape[0]):
        counts[g] = 0
    for i in range(start, stop):
        counts[grades[i]] += 1
    begins[0] = 0
    pairs = 0
    for g in range(n_grades):
        pairs += counts[g] * begins[g]
        begins[g + 1] = begins[g] + counts[g]
        seen[g] = 0
        sums[begins[g] + g] = 0.0
        for h in range(g):
            tails[g * width, h * width] = 0.0
    for g in range(n_grades, counts.shape[0]):
        begins[g] = stop - start
        sums[begins[g] + g - 1] = sums[begins[g] + g] = 0.0
    scale = 2.0 / pairs
    for i in range(start, stop):
        g = grades[i]
        c = seen[g]
        key = scale * scores[i]
        place = begins[g] + c
        keys[place], members[place] = key, i - start
        sums[place + g + 1] = sums[place + g] + key
        for h in range(g):
            tails[g * width, h * width] += sums[begins[h] + h + seen[h]] - seen[h] * key
        if c < k:
            for h in range(n_grades):
                above[g * width + c, h] = seen[h]
        seen[g] = c + 1


@kernel(inner=True)
def _fill_tails(documents, by_grade, n_grades, k, above, tails):
    """Complete `tails`, the value of the pairs of each two grades by score, without the first documents of both.

    ``tails[a * (k + 1) + c_a, b * (k + 1) + c_b]`` is that of grades a > b without c_a and c_b documents.
    """
    keys, sums = documents[0][0], documents[0][1]
    counts, begins = by_grade[0], by_grade[1]
    width = above.shape[0] // above.shape[1]
    for a in range(1, n_grades):
        sums_a = sums[begins[a] + a : begins[a + 1] + a + 1]
        most_a = min(counts[a], k)
        for b in range(a):
            sums_b = sums[begins[b] + b : begins[b + 1] + b + 1]
            first = b * width
            for c in range(most_a):
                ahead = above[a * width + c, b]
                tails[a * width + c + 1, first] = tails[a * width + c, first] - (sums_b[ahead] - ahead * keys[begins[a] + c])
            for j in range(min(counts[b], k)):
                key, ahead = keys[begins[b] + j], above[b * width + j, a]
                for c in range(min(most_a, k - j - 1) + 1):
                    behind = max(c, ahead)
                    passed = (counts[a] - behind) * key - (sums_a[counts[a]] - sums_a[behind])
                    tails[a * width + c, first + j + 1] = tails[a * width + c, first + j] - passed


@kernel(inner=True)
def _fill_cells(documents, by_grade, n_cells, counts, sources, powers, tails, by_cell, cascade):
    """Prepare for each cell what depends on the counts of the inner grades alone.

    For the steps into it: the score of the document, the value of the pairs that it passes within these grades (-inf if there
    is no such document) and the chance that a reader gets there. For the cell: the chance to read on, the value of the tail.
    """
    keys, sums = documents[0][0], documents[0][1]
    n, begins = by_grade[0], by_grade[1]
    width = powers.shape[1]
    n_0, n_1, n_2 = n[0], n[1], n[2]
    begin_1, begin_2 = begins[1], begins[2]
    total_1, total_2 = sums[begins[2] + 1], sums[begins[3] + 2]
    for cell in range(np.uintp(n_cells)):
        c_0, c_1, c_2 = counts[0, cell], counts[1, cell], counts[2, cell]
        by_cell[_VALUES, cell] = by_cell[_VALUES + 1, cell] = by_cell[_VALUES + 2, cell] = -np.inf
        if c_0 > n_0 or c_1 > n_1 or c_2 > n_2:
            continue
        rest_1, rest_2 = total_1 - sums[begin_1 + 1 + c_1], total_2 - sums[begin_2 + 2 + c_2]
        if c_0 > 0:
            key = keys[c_0 - 1]
            by_cell[_KEYS, cell], by_cell[_VALUES, cell] = key, (n_1 - c_1 + n_2 - c_2) * key - rest_1 - rest_2
        if c_1 > 0:
            key = keys[begin_1 + c_1 - 1]
            by_cell[_KEYS + 1, cell], by_cell[_VALUES + 1, cell] = key, (n_2 - c_2) * key - rest_2
        if c_2 > 0:
            by_cell[_KEYS + 2, cell], by_cell[_VALUES + 2, cell] = keys[begin_2 + c_2 - 1], 0.0
        by_cell[_TAIL, cell] = tails[width + c_1, c_0]
        if n_2 > 0:
            by_cell[_TAIL, cell] += tails[2 * width + c_2, c_0] + tails[2 * width + c_2, width + c_1]
        if cascade:
            by_cell[_CHANCE, cell] = powers[0, c_0] * powers[1, c_1] * powers[2, c_2]
            for g in range(_INNER):
                by_cell[_CHANCES + g, cell] = by_cell[_CHANCE, sources[g, cell]]


@kernel(by_address=True)
def find(block):
    """Find the most violated ranking of each query of a `structrank._kernels.oracles.GradedBlock`.

    Its settings are k, a cutoff of at most the length of the longest query, and whether readers stop at a document with
    probability gain; its lattice is from `make_lattice`.
    """
    scores, starts, grades, grade_starts = block.scores, block.starts, block.grades, block.grade_starts
    gains, ranking, discount, k, cascade = block.gains, block.ranking, block.table[0], block.settings[0], block.settings[1] == 1
    longest, most_grades = np.int64(0), np.int64(2)  # literals as arguments would have compiled functions of their own
    for q in range(starts.shape[0] - 1):
        longest = max(longest, starts[q + 1] - starts[q])
        most_grades = max(most_grades, grade_starts[q + 1] - grade_starts[q])
    firsts, ends, cell_counts, sources = block.block_firsts, block.cell_ends, block.cell_counts, block.cell_sources
    lattice = block.block_sizes, firsts, block.block_previous, ends, cell_counts, sources, block.cell_discounts
    workspace = _make_workspace(longest, most_grades, k, ends[k], firsts[firsts.shape[0] - 1])
    documents, by_grade, above, tails, _, levels, powers, by_cell, _ = workspace
    worth = levels[4]
    for q in range(starts.shape[0] - 1):
        start, stop, first_gain = starts[q], starts[q + 1], grade_starts[q]
        n_grades, depth = grade_starts[q + 1] - first_gain, min(k, stop - start)
        _sort_into_grades(scores, grades, start, stop, n_grades, depth, documents, by_grade, above, tails)
        _fill_tails(documents, by_grade, n_grades, depth, above, tails)
        ideal = ideal_credit(by_grade, n_grades, gains, first_gain, discount, depth, cascade)
        for g in range(n_grades):
            gain = gains[first_gain + g]
            worth[g] = gain / ideal
            if cascade:
                for c in range(depth):
                    powers[g, c + 1] = powers[g, c] * (1.0 - gain)
        _fill_cells(documents, by_grade, ends[depth], cell_counts, sources, powers, tails, by_cell, cascade)
        best_block = _best_block(n_grades, k, depth, lattice, workspace, cascade)
        _trace_back(best_block, n_grades, depth, lattice, workspace, discount, start, ranking)
        _append_tail(grades, start, stop, n_grades, by_grade, depth, ranking)


@kernel(inner=True)
def _step_to_block(value, source, target, n_cells, passing, credit, discounts, placed, chances, is_first):
    """Place a document of a grade outside the cells: steps to all cells of a block from the same cells of another."""
    source, target, placed = np.uintp(source), np.uintp(target), np.uintp(placed)
    if is_first:
        for i in range(np.uintp(n_cells)):
            value[target + i] = value[source + i] + (passing - credit * (discounts[placed, i] * chances[i]))
        return
    for i in range(np.uintp(n_cells)):
        candidate = value[source + i] + (passing - credit * (discounts[placed, i] * chances[i]))
        known = value[target + i]
        value[target + i] = candidate if candidate > known else known


@kernel(inner=True)
def _step_within_block(value, target, n_cells, rest, rest_sum, reach, worth, placed, sources, discounts, by_cell, cascade):
    """Place documents of the inner grades, in order of the cells, and so of their sums."""
    target, placed = np.uintp(target), np.uintp(placed)
    worth_0, worth_1, worth_2 = worth[0] * reach, worth[1] * reach, worth[2] * reach
    for cell in range(np.uintp(1), np.uintp(n_cells)):
        discount = discounts[placed, cell]
        credit_0, credit_1, credit_2 = worth_0 * discount, worth_1 * discount, worth_2 * discount
        if cascade:
            credit_0 *= by_cell[_CHANCES, cell]
            credit_1 *= by_cell[_CHANCES + 1, cell]
            credit_2 *= by_cell[_CHANCES + 2, cell]
        step_0 = by_cell[_VALUES, cell] + rest * by_cell[_KEYS, cell] - credit_0
        step_1 = by_cell[_VALUES + 1, cell] + rest * by_cell[_KEYS + 1, cell] - credit_1
        step_2 = by_cell[_VALUES + 2, cell] + rest * by_cell[_KEYS + 2, cell] - credit_2
        for_0 = value[target + np.uintp(sources[0, cell])] + step_0
        for_1 = value[target + np.uintp(sources[1, cell])] + step_1
        for_2 = value[target + np.uintp(sources[2, cell])] + step_2
        best = value[target + cell] + rest_sum
        best = for_0 if for_0 > best else best
        best = for_1 if for_1 > best else best
        best = for_2 if for_2 > best else best
        value[target + cell] = best - rest_sum


@kernel(inner=True)
def _best_block(n_grades, k, depth, lattice, workspace, cascade):
    """Fill the lattice; return the block of the best path, and leave its counts in the third row of `by_grade`."""
    sizes, firsts, previous, ends, cell_counts, sources, discounts = lattice
    documents, by_grade, _, tails, tail_sums, levels, powers, by_cell, all_values = workspace
    value = all_values[0]
    keys, sums = documents[0][0], documents[0][1]
    counts, begins, best_counts = by_grade[0], by_grade[1], by_grade[2]
    chances, cell_tails = by_cell[_CHANCE], by_cell[_TAIL]
    count, left, start = by_grade[3], by_grade[4], by_grade[5]
    # Of the grades from g on: documents not placed and the sum of their scores, value of their tail, chance to read on.
    rest, rest_sum, tail, reach, worth = levels[0], levels[1], levels[2], levels[3], levels[4]
    width, missing = powers.shape[1], k - depth
    highest = max(n_grades, _INNER)
    left[highest], rest[highest], rest_sum[highest], tail[highest], reach[highest] = k, 0.0, 0.0, 0.0, 1.0
    for i in range(tail_sums.shape[1]):
        tail_sums[highest, i] = 0.0
    for g in range(highest + 1):
        count[g] = start[g] = 0
    best, best_block = -np.inf, 0
    top = highest - 1  # highest grade whose count has changed
    while True:
        for g in range(top, _INNER - 1, -1):
            c = count[g]
            left[g] = left[g + 1] - c
            rest[g] = rest[g + 1] + (counts[g] - c)
            rest_sum[g] = rest_sum[g + 1] + (sums[begins[g + 1] + g] - sums[begins[g] + g + c])
            reach[g] = reach[g + 1] * powers[g, c]
            tail[g] = tail[g + 1] + tail_sums[g + 1, g * width + c]
            for i in range(np.uintp(g * width)):
                tail_sums[np.uintp(g), i] = tail_sums[np.uintp(g + 1), i] + tails[np.uintp(g * width + c), i]
        block = start[_INNER]
        layer = left[_INNER] - missing
        placed, n_cells, target = depth - layer, ends[layer], firsts[block]
        is_first = block >= 0  # True, which as a literal would compile `_step_to_block` twice
        below = 1.0
        for g in range(_INNER, n_grades):
            c = count[g]
            if c > 0:
                passing = rest[g + 1] * keys[begins[g] + c - 1] - rest_sum[g + 1]
                credit = worth[g] * reach[g + 1] * powers[g, c - 1] * below
                source = firsts[previous[block, g]]
                _step_to_block(value, source, target, n_cells, passing, credit, discounts, placed, chances, is_first)
                is_first = False
            below *= powers[g, c]
        if is_first:
            for i in range(n_cells):
                value[target + i] = 0.0 if i == 0 else -np.inf
        above = rest[_INNER], rest_sum[_INNER], reach[_INNER]
        _step_within_block(value, target, n_cells, *above, worth, placed, sources, discounts, by_cell, cascade)
        most = tail[_INNER]  # tails are longest without documents of the grade in the top
        for g in range(_INNER):
            most += tail_sums[_INNER, g * width]
        for cell in range(np.uintp(ends[layer - 1] if layer > 0 else 0), np.uintp(n_cells)):
            total = value[np.uintp(target) + cell] + cell_tails[cell]
            if total + most <= best:
                continue
            total += tail[_INNER]
            for g in range(_INNER):
                total += tail_sums[_INNER, np.uintp(g * width + cell_counts[g, cell])]
            if total > best:
                best, best_block = total, block
                for g in range(highest):
                    best_counts[g] = cell_counts[g, cell] if g < _INNER else count[g]
        top = _INNER
        while top < n_grades and (count[top] == counts[top] or left[top] == missing):
            top += 1
        if top >= n_grades:
            return best_block
        start[top] += sizes[top - 1, left[top]]
        count[top] += 1
        for g in range(_INNER, top):
            count[g], start[g] = 0, start[top]


@kernel(inner=True)
def _trace_back(block, n_grades, depth, lattice, workspace, discount, start, ranking):
    """Follow the best path backwards: at each state, the step of largest value was taken."""
    _, firsts, previous, _, cell_counts, sources, _ = lattice
    documents, by_grade, _, _, _, levels, powers, _, all_values = workspace
    worth, value = levels[4], all_values[0]
    keys, sums, members = documents[0][0], documents[0][1], documents[1][0]
    counts, begins, count = by_grade[0], by_grade[1], by_grade[2]
    cell = 0
    while cell_counts[0, cell] != count[0] or cell_counts[1, cell] != count[1] or cell_counts[2, cell] != count[2]:
        cell += 1
    for rank in range(depth - 1, -1, -1):
        best, step = -np.inf, 0
        rest, rest_sum = 0.0, 0.0
        for g in range(n_grades - 1, -1, -1):
            c = count[g]
            if c > 0:
                reach = powers[g, c - 1]
                for h in range(n_grades):
                    if h != g:
                        reach *= powers[h, count[h]]
                state = firsts[block] + sources[g, cell] if g < _INNER else firsts[previous[block, g]] + cell
                candidate = value[state] + (rest * keys[begins[g] + c - 1] - rest_sum - worth[g] * reach * discount[rank])
                if candidate > best:
                    best, step = candidate, g
            rest += counts[g] - c
            rest_sum += sums[begins[g + 1] + g] - sums[begins[g] + g + c]
        if step < _INNER:
            cell = sources[step, cell]
        else:
            block = previous[block, step]
        count[step] -= 1
        ranking[start + rank] = members[begins[step] + count[step]]


@kernel(inner=True)
def _append_tail(grades, start, stop, n_grades, by_grade, depth, ranking):
    """Append the documents that are not in the top to the ranking, in order of score."""
    in_top = by_grade[2]
    for g in range(n_grades):
        in_top[g] = 0
    for place in range(start, start + depth):
        in_top[grades[start + ranking[place]]] += 1
    place = start + depth
    for i in range(start, stop):
        if in_top[grades[i]] > 0:
            in_top[grades[i]] -= 1
        else:
            ranking[place] = i - start
            place += 1
