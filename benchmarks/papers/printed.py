"""The figures of the papers' tables, as printed: errors and accuracies in percent, seconds of computers of then.

Two figures look misprinted and are kept as they are: the accuracy of FULL on usps with wrong labels (98.43, where 99.43
fits its other figures), and smooth SVM's seconds of leukemia in ten folds (more than in leave-one-out).
"""

from typing import NamedTuple

# ----------------------------------------------------------------------- Bordes, Ertekin, Weston, Bottou, JMLR 6 (2005)


class Fit(NamedTuple):
    """Figure 8: one way to train on one set; kernel values in millions."""

    error: float
    support: int
    evaluations: float
    seconds: float


LIBSVM = {
    "waveform": Fit(8.82, 1006, 4.2, 3.2),
    "banana": Fit(9.96, 873, 6.8, 9.9),
    "reuters": Fit(2.76, 1493, 11.8, 24),
    "usps 0": Fit(0.41, 236, 1.97, 13.5),
    "usps 0+N": Fit(0.41, 2750, 63, 305),
    "a9a": Fit(14.90, 11327, 1760, 1079),
}
LASVM = {  # one epoch, and FINISH
    "waveform": Fit(8.68, 948, 2.2, 2.7),
    "banana": Fit(9.98, 869, 6.7, 10.0),
    "reuters": Fit(2.76, 1504, 9.2, 31.4),
    "usps 0": Fit(0.43, 201, 1.08, 15.9),
    "usps 0+N": Fit(0.53, 2572, 20, 178),
    "a9a": Fit(14.94, 11268, 626, 809),
}
FINISH = {  # Figure 9: change of the error, of the support vectors and of the time by FINISH, in percent
    "waveform": (0, 0, 4),
    "banana": (-79, -74, 185),
    "reuters": (0, 0, 3),
    "usps 0": (0, -2, 0),
    "usps 0+N": (-67, -33, 7),
    "a9a": (-13, -19, 80),
}
DIGITS = {"LIBSVM": (1.36, 17400), "LASVM, 1 epoch": (1.42, 4950), "LASVM, 2 epochs": (1.36, 12210)}  # Figure 4: %, s
RETRAINING = {"retrained, all": 917.0, "LASVM, all": 99.0, "LASVM, 50": 9.6}  # Figure 16: s for 500 labels of reuters

# ------------------------------------------------------------------ Ertekin, Huang, Bottou, Giles, CIKM 2007 ("Border")


class Stopped(NamedTuple):
    """Tables 1 and 3: learning from all labels, and active learning where it stops; PRBEP of five ways."""

    g_means: tuple[float, float]  # all labels, active
    auc: tuple[float, float]
    support_ratio: float  # negative for each positive
    labels: float  # percent
    prbep: tuple[float, float, float, float, float]  # all labels, undersampled, SMOTE, different costs, active
    seconds: tuple[float, float]  # SMOTE, active


BORDER = {
    "reuters": Stopped((81.43, 82.79), (98.69, 98.71), 2.19, 18.7, (73.74, 74.30, 75.42, 75.42, 76.54), (331, 35)),
    "abalone": Stopped((100.0, 100.0), (100.0, 100.0), 1.38, 24.0, (100.0, 100.0, 100.0, 100.0, 100.0), (16, 4)),
    "letter": Stopped((99.28, 99.54), (99.99, 99.99), 1.46, 27.8, (99.48, 96.45, 99.24, 99.35, 99.35), (86, 3)),
    "satimage": Stopped((82.41, 83.30), (95.13, 95.75), 2.62, 41.7, (73.46, 68.72, 73.46, 73.93, 73.93), (63, 21)),
    "usps": Stopped((99.22, 99.25), (99.98, 99.98), 1.50, 6.8, (98.44, 98.44, 98.13, 98.44, 98.75), (4328, 13)),
    "mnist": Stopped((98.47, 98.37), (99.97, 99.97), 1.59, 11.7, (97.63, 97.02, 97.74, 97.63, 97.74), (83339, 1048)),
}
RANKS = {"batch": 2.28, "undersampled": 4.00, "SMOTE": 2.22, "costs": 2.17, "active": 1.50}  # Table 4, mean of 18 sets
ADULT_AUC = {"active": 0.8980, "all labels": 0.8910, "random, as many labels": 0.8725}  # Figure 7

# --------------------------------------------------------------- Ertekin, Bottou, Giles ("Ignorance is bliss"), Table 3


class Learned(NamedTuple):
    """One epoch, no FINISH; means of ten runs; kernel values in millions."""

    accuracy: float
    prbep: float
    auc: float
    g_means: float
    support: int
    evaluations: float
    seconds: float


GAP = {
    ("a9a", "FULL"): Learned(84.87, 67.55, 0.897, 73.13, 11831, 709.0, 1186),
    ("a9a", "G"): Learned(84.81, 67.18, 0.893, 72.87, 11266, 233.0, 479),
    ("a9a", "NC"): Learned(85.01, 67.85, 0.901, 75.03, 4609, 116.9, 129),
    ("a9a", "I"): Learned(84.82, 67.71, 0.899, 73.72, 5776, 105.9, 92),
    ("mnist", "FULL"): Learned(99.25, 95.98, 0.998, 97.29, 3412, 2269.7, 4757.4),
    ("mnist", "G"): Learned(99.27, 96.18, 0.998, 97.42, 3157, 182.6, 547.1),
    ("mnist", "NC"): Learned(99.15, 95.64, 0.998, 96.86, 2653, 153.5, 526.0),
    ("mnist", "I"): Learned(99.18, 95.80, 0.998, 97.06, 2722, 121.2, 491.4),
    ("banana", "FULL"): Learned(90.03, 88.54, 0.965, 89.51, 947, 8.51, 1),
    ("banana", "G"): Learned(89.81, 88.46, 0.966, 89.30, 941, 3.8, 0.6),
    ("banana", "NC"): Learned(89.97, 88.61, 0.965, 89.47, 551, 3.1, 0.4),
    ("banana", "I"): Learned(89.84, 88.54, 0.964, 89.38, 669, 2.0, 0.3),
    ("reuters", "FULL"): Learned(97.19, 76.48, 0.987, 81.00, 1122, 33.2, 14.4),
    ("reuters", "G"): Learned(97.19, 76.42, 0.987, 81.17, 1120, 9.9, 5.3),
    ("reuters", "NC"): Learned(97.16, 76.42, 0.987, 81.19, 1086, 9.9, 4.7),
    ("reuters", "I"): Learned(97.16, 76.20, 0.987, 81.06, 1093, 8.0, 3.6),
    ("usps", "FULL"): Learned(99.54, 98.62, 0.999, 98.93, 384, 27.0, 43.7),
    ("usps", "G"): Learned(99.54, 98.66, 0.999, 98.92, 383, 5.2, 17.3),
    ("usps", "NC"): Learned(99.52, 98.59, 0.999, 98.99, 372, 5.2, 8.0),
    ("usps", "I"): Learned(99.57, 98.65, 0.999, 98.89, 373, 3.2, 5.8),
    ("usps+N", "FULL"): Learned(98.43, 98.53, 0.998, 98.42, 2455, 30.2, 36),
    ("usps+N", "G"): Learned(99.42, 98.50, 0.998, 98.42, 2288, 14.3, 17),
    ("usps+N", "NC"): Learned(99.51, 98.53, 0.998, 98.74, 752, 7.3, 8.3),
    ("usps+N", "I"): Learned(99.49, 98.56, 0.998, 98.72, 937, 6.8, 6),
}
ADMITTED = {  # Table 1, adult, s = -1: admitted and removed by CLEAN left (y f < -1) and right (y f > 1)
    "G": {"admitted left": 1340, "admitted right": 20252, "cleaned left": 1, "cleaned right": 19562, "support": 11265},
    "FULL": {"admitted": 32562, "support": 11831, "not support": 20731},
}

# --------------------------------------------------------- Glasmachers, "The planning-ahead SMO algorithm", Tables 1, 2


class Steps(NamedTuple):
    """Means of 100 permutations: support vectors, bounded ones, seconds and iterations of SMO and of planning ahead."""

    support: int
    bounded: int
    seconds: tuple[float, float]
    iterations: tuple[int, int]

    @property
    def share(self) -> float:
        """Iterations of planning ahead for each of SMO."""
        return self.iterations[1] / self.iterations[0]


PLANNING = {
    "banana": Steps(1223, 1199, (2.07, 2.08), (23295, 19721)),
    "breast-cancer": Steps(178, 131, (0.02, 0.02), (313, 292)),
    "diabetis": Steps(445, 414, (0.08, 0.10), (361, 358)),
    "flare-solar": Steps(744, 709, (0.18, 0.19), (792, 744)),
    "german": Steps(620, 426, (0.20, 0.19), (908, 879)),
    "heart": Steps(158, 149, (0.02, 0.02), (113, 112)),
    "image": Steps(301, 84, (0.45, 0.46), (6553, 6359)),
    "ringnorm": Steps(625, 86, (2.41, 2.27), (1569, 1537)),
    "splice": Steps(1426, 7, (4.04, 3.92), (6643, 5854)),
    "thyroid": Steps(17, 3, (0.02, 0.01), (744, 667)),
    "titanic": Steps(934, 915, (0.54, 0.47), (3375, 1653)),
    "twonorm": Steps(734, 662, (2.67, 2.65), (641, 642)),
    "waveform": Steps(1262, 980, (3.03, 2.99), (1610, 1539)),
    "chess-board-1000": Steps(41, 3, (3.86, 2.98), (1883310, 1186963)),
    "chess-board-10000": Steps(129, 84, (76.72, 75.36), (32130476, 24997371)),
    "chess-board-100000": Steps(556, 504, (475.37, 428.18), (145364030, 105199379)),
    "connect-4": Steps(13485, 5994, (1268.04, 1243.56), (82076, 77690)),
    "king-rook-vs-king": Steps(5815, 206, (272.80, 273.06), (69410, 64067)),
    "tic-tac-toe": Steps(104, 0, (0.10, 0.10), (8321, 7786)),
    "internet-ads": Steps(1350, 6, (2.38, 2.31), (2785, 2750)),
    "ionosphere": Steps(190, 8, (0.03, 0.04), (411, 408)),
    "spambase": Steps(1982, 583, (8.36, 8.36), (9641, 9171)),
}

# --------------- Wen, Li, Ramamohanarao, J. Chen, Y. Chen, Zhang, "Improving efficiency .."


class Seeded(NamedTuple):
    """Tables 1 and 3: ten folds from 0 (LIBSVM), ATO, MIR, SIR; seconds of three numbers of folds."""

    iterations: tuple[int, int, int, int]
    seconds: tuple[float, float, float, float]  # initialisation included
    accuracy: float
    by_folds: dict[str, tuple[float, float]]  # LIBSVM, SIR


SEEDING = {
    "a9a": Seeded(
        (397565, 361914, 318169, 317110),
        (6783, 9562, 5751, 3762),
        82.36,
        {"3": (733, 683), "10": (6783, 3762), "100": (41288, 33877)},
    ),
    "heartraw": Seeded(
        (6988, 4882, 1443, 3968),
        (0.36, 0.206, 0.141, 0.243),
        55.56,
        {"3": (0.09, 0.08), "10": (0.36, 0.25), "100": (3.39, 1.17)},
    ),
    "madelon": Seeded(
        (9000, 5408, 1800, 1800),
        (54.5, 26.6, 14.5, 14.7),
        50.0,
        {"3": (8.8, 7.8), "10": (54.5, 14.7), "100": (620, 19.5)},
    ),
    "mnist": Seeded(
        (1291068, 575250, 280820, 258500),
        (172816, 104845, 69593, 37822),
        50.85,
        {"3": (29692, 22296), "10": (172816, 37822), "100": (2508684, 61016)},
    ),
    "w8a": Seeded(
        (783208, 245385, 230357, 356528),
        (24689, 20560, 13746, 12034),
        97.70,
        {"3": (3941, 2342), "10": (24689, 12034), "100": (190817, 31918)},
    ),
}

# ------------------------------------------------------------- Tseng, Lee, "Rank-r updating techniques", Tables 2 and 3


class Updated(NamedTuple):
    """Seconds of smooth SVM anew, of strategies I and II, and of LIBSVM; accuracy of the first three, and of LIBSVM."""

    seconds: tuple[float, float, float, float]
    accuracy: float
    libsvm: float


RANK_R = {
    ("face", "linear", "loo"): Updated((22.41, 14.32, 25.48, 1041.11), 97.73, 98.08),
    ("ionosphere", "linear", "loo"): Updated((0.16, 0.09, 0.23, 0.53), 88.89, 87.18),
    ("pima", "linear", "loo"): Updated((0.37, 0.23, 8.86, 5.53), 76.56, 76.56),
    ("colon", "linear", "loo"): Updated((38.81, 2.97, 0.59, 0.64), 83.87, 80.65),
    ("leukemia", "linear", "loo"): Updated((89.37, 62.72, 2.61, 2.42), 98.61, 97.22),
    ("face", "rbf", "loo"): Updated((4508.58, 1652.27, 1002.83, 35786.39), 99.76, 99.83),
    ("ionosphere", "rbf", "loo"): Updated((1.57, 0.87, 0.41, 0.94), 95.73, 93.73),
    ("pima", "rbf", "loo"): Updated((95.22, 69.77, 63.72, 19.89), 77.21, 75.52),
    ("face", "linear", "10"): Updated((4.57, 3.94, 5.00, 43.41), 97.76, 98.01),
    ("ionosphere", "linear", "10"): Updated((0.07, 0.04, 0.09, 0.11), 87.68, 87.46),
    ("pima", "linear", "10"): Updated((0.04, 0.03, 0.66, 0.19), 76.41, 76.56),
    ("colon", "linear", "10"): Updated((21.73, 4.77, 0.37, 0.33), 83.75, 82.26),
    ("leukemia", "linear", "10"): Updated((196.98, 40.30, 1.03, 0.97), 97.80, 97.22),
    ("face", "rbf", "10"): Updated((314.51, 75.11, 36.37, 186.53), 99.72, 99.81),
    ("ionosphere", "rbf", "10"): Updated((0.38, 0.23, 0.15, 0.12), 95.54, 93.73),
    ("pima", "rbf", "10"): Updated((3.48, 3.15, 3.83, 0.42), 77.11, 75.39),
}
