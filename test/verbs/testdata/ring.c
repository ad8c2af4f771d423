/* A token goes around all ranks, each of which adds one to it; then all ranks, counted from one, are added up. */
#include <mpi.h>
#include <stdio.h>

enum { ROUNDS = 100 };

int main(int argc, char **argv)
{
	int rank, ranks, token = 0, mine, sum;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (int i = 0; i < ROUNDS; i++) {
		int from = (rank + ranks - 1) % ranks, to = (rank + 1) % ranks;

		if (rank > 0)
			MPI_Recv(&token, 1, MPI_INT, from, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		token++;
		MPI_Send(&token, 1, MPI_INT, to, i, MPI_COMM_WORLD);
		if (rank == 0)
			MPI_Recv(&token, 1, MPI_INT, from, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	mine = rank + 1;
	MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d rounds of %d ranks: token %d, sum %d\n", ROUNDS, ranks, token, sum);
	MPI_Finalize();
	return 0;
}
