"""What words of German, French, Spanish and Chinese requests mean in English, which most tools are described in.

A table of what names of tools say: the commonest words of the functions of the Berkeley leaderboard, and those of
files, shops and everyday things. A word stands for all that begin as it does and are not much longer ("rechnung" for
"Rechnungen"), without accents; Chinese, which writes no blanks, is looked through for each.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from adapter.values.lazy_pattern import lazy_pattern

LONGEST_ENDING = 4
"""Letters that a word may have behind what the table has of it."""
SHORTEST = 4
"""Letters of what a word may be longer than; a shorter one is that word alone."""

TABLE = """
show display | zeig anzeig | montre affiche voir | muestr ensen ver | 显示 查看 看看 展示
list | auflist liste | liste enumer | lista enumera | 列出 列表 清单
open | offne | ouvr | abre abrir | 打开
read | lies lesen | lis lire | lee leer | 读取 阅读
write | schreib | ecri | escrib | 写入 写
create make new | erstell anleg erzeug neue | cree creer nouve | crea crear nuev | 创建 新建 建立
delete remove | losch entfern | supprim efface enleve | borra elimin quita | 删除 移除
move | verschieb beweg | deplac | muev mover traslad | 移动
copy | kopier | copie copier | copia copiar | 复制
rename | umbenenn benenne | renomm | renombr | 重命名
replace change edit modify | ersetz ander | remplac chang modifi | reemplaz cambi modific sustitu | 替换 修改 更改
search find locate | such find | cherch trouv recherch | busca encuentr encontrar | 搜索 查找 寻找 找到
run execute | ausfuhr starte fuhre | execut lance | ejecut corre | 运行 执行
get fetch retrieve | hole abruf besorg | recuper obten obtien | obten obtien recuper | 获取 取得
check | pruf uberpruf | verifi | comprueb verific revis | 检查 核对
lookup look | nachschlag | consult | consult | 查询
send | send schick | envoi envoy | envia mand | 发送 寄
book reserve booking | buch reservier | reserv | reserv | 预订 预定
order | bestell auftrag | command | pedid ordena encarg | 订单 订购
buy purchase | kauf | achet achat | compra | 购买
cancel | stornier kundig abbrech | annul resili | cancel anula | 取消
convert conversion units | umrechn rechne wandl einheit | converti convers unite | conviert conver unidad | 转换 换算
calculate compute calculation | berechn ausrechn | calcul | calcul | 计算
add | hinzufug addier erganz | ajout addition | anad agreg suma | 添加 增加
set | stell setz | regl mets mettre defini | pon poner configur establec | 设置 设定 设到
start | start | demarr lance | inici empiez | 开始 启动
stop | stopp halte | arret | para deten | 停止
play | spiel | joue jouer | toca pon reproduc jueg | 播放
translate | ubersetz | tradui traduct | traduc | 翻译
schedule meeting | termin vereinbar besprech treffen | reunion planifi | reunion program cita | 会议 安排
sort | sortier ordne | trie trier | ordena clasific | 排序
compare difference | vergleich unterschied | compar differ | compar diferenc | 比较
generate random | zufall generier | aleatoir hasard gener | aleatori azar gener | 随机 生成
predict forecast prediction | vorhersag prognos | previs predi | pronostic predic prediccion | 预测 预报
estimate | schatz | estim | estim | 估计
solve | losung los | resou resol | resuelv resolver | 求解 解方程
apply | anwend | appliqu | aplica | 应用
track | verfolg | suivre suivi | rastre sigue | 跟踪 追踪
update | aktualisier | mettre a jour actualis | actualiz | 更新
recommend | empfehl | recommand | recomiend recomend | 推荐
file | datei | fichier | archivo ficher | 文件
folder directory | ordner verzeichnis | dossier repertoire | carpeta directori | 文件夹 目录
code | quelltext | code | codigo | 代码
command | befehl kommando | commande | comando | 命令
text | text | texte | texto | 文本
name | name | nom | nombre | 名称 名字
invoice | rechnung | factur | factura | 发票
ticket | ticket | ticket | ticket tique | 工单
customer | kunde | client | cliente | 客户 顾客
account | konto | compte | cuenta | 账户 帐户
subscription | abo abonnement | abonnement | suscripcion | 订阅
discount | rabatt nachlass | remise reduction rabais | descuento rebaja | 折扣 打折
ship shipping | versend verschick liefer | expedi livr | envia entreg despach | 发货 运送
warehouse stock | lager bestand | entrepot stock | almacen existenc | 仓库 库存
product item | produkt artikel | produit article | producto articulo | 产品 商品
reason | grund | raison | motivo razon | 原因
payment pay | zahl bezahl | paie payer | pago pagar | 付款 支付
price cost | preis kost | prix cout | precio cuesta coste | 价格 多少钱
stock share | aktie | action bours | accion bolsa | 股票 股价
rate | satz kurs | taux | tasa tipo | 利率 汇率
exchange currency | wechselkurs wahrung | devise monnaie | divisa moneda | 货币 外汇
interest compound | zins zinseszins | interet | interes | 利息 复利
loan mortgage | kredit darlehen hypothek | pret hypotheque | prestamo hipoteca | 贷款 按揭
investment invest | anlage invest | investi placement | inversion inviert | 投资
expense | ausgabe | depense | gasto | 支出 花费
tax | steuer | impot taxe | impuesto | 税
market | markt | marche | mercado | 市场
company | firma unternehmen | entreprise societe | empresa compania | 公司
weather | wetter | meteo temps | tiempo clima | 天气
temperature | temperatur | temperature | temperatura | 温度 气温
alarm | wecker alarm | alarme reveil | alarma despertador | 闹钟
timer | timer kurzzeitwecker | minuteur | temporizador | 计时器 定时器
message | nachricht | message | mensaje | 消息 短信
mail email | mail | courriel mail | correo | 邮件
recipient | empfanger | destinataire | destinatario | 收件人
song music | lied musik song | chanson musique | cancion musica | 歌曲 音乐
artist | kunstler sanger | artiste chanteu | artista cantante | 歌手 艺术家
movie film | film | film | pelicula | 电影
book | buch bucher | livre | libro | 图书
restaurant | restaurant lokal | restaurant | restaurante | 餐厅 餐馆
recipe cooking | rezept koch | recette cuisin | receta cocin | 食谱 菜谱
food | essen | nourriture aliment | comida aliment | 食物
hotel | hotel | hotel | hotel | 酒店 宾馆
room | zimmer | chambre | habitacion | 房间
flight | flug | vol vols | vuelo | 航班 机票
taxi | taxi | taxi | taxi | 出租车
train | zug zuge | train | tren | 火车 列车
car | auto wagen | voiture | coche carro | 汽车
route directions | route weg | itineraire trajet | ruta camino | 路线
distance | entfernung distanz abstand | distance | distancia | 距离
travel trip | reise | voyage | viaje | 旅行
event concert | veranstaltung konzert | evenement concert | evento concierto | 活动 音乐会
museum | museum | musee | museo | 博物馆
library | bibliothek | bibliotheque | biblioteca | 图书馆
game | spiel | jeu jeux | juego partido | 比赛 游戏
team | mannschaft team | equipe | equipo | 球队
player | spieler | joueur | jugador | 球员
score | ergebnis punktestand | score resultat | resultado puntuacion | 比分 得分
news | nachrichten | nouvelles actualite | noticia | 新闻
history | geschichte | histoire | historia | 历史
law lawsuit case | klage gerichtsfall | proces affaire | demanda caso | 诉讼 案件
city | stadt | ville | ciudad | 城市
country | land | pays | pais | 国家
location | ort standort | lieu endroit | lugar ubicacion | 地点 位置
population | einwohner bevolkerung | population habitant | poblacion habitante | 人口
people | leute menschen | gens | gente personas | 人
date | datum | date | fecha | 日期
time | uhrzeit zeit | heure | hora | 时间
year | jahr | annee | ano anos | 年
number | zahl nummer | nombre numero | numero | 数字 号码
value | wert | valeur | valor | 数值
area | flache | aire surface | area superficie | 面积
triangle | dreieck | triangle | triangulo | 三角形
circle | kreis | cercle | circulo | 圆
radius | radius | rayon | radio | 半径
height | hohe | hauteur | altura | 高度 高为
base | grundseite basis | base | base | 底边 底为
length | lange | longueur | longitud | 长度
weight mass | gewicht masse | poids masse | peso masa | 重量 质量
volume | volumen | volume | volumen | 体积
speed velocity | geschwindigkeit | vitesse | velocidad | 速度
prime factors | primfaktor primzahl | facteur premier | factor primo | 质因数 素数 质数
average mean | durchschnitt mittelwert | moyenne | promedio media | 平均
sum total | summe | somme total | suma total | 总和 总数
probability | wahrscheinlichkeit | probabilite | probabilidad | 概率
equation | gleichung | equation | ecuacion | 方程
minutes | minute | minute | minuto | 分钟
days | tag tage | jour | dia dias | 天
language | sprache | langue | idioma lengua | 语言
color | farbe | couleur | color | 颜色
light lamp | licht lampe | lumiere lampe | luz lampara | 灯
"""


_LITTLE = {
    "en": "the a an of to is are i my me it in on at for with what how and this that you please by",
    "de": "der das dem den ein eine einen einem ich mir du er es wir ihr man wie wird ist sind hat kann und oder auf "
    "mit von zu zum zur nicht kein keine bitte welche mein dein dieser",
    "fr": "le la les un une du des au aux je moi il elle on se ne pas est et ou pour quel quelle quels que qui dans "
    "sur avec ce ces cette comment mon ma mes vous nous ton votre",
    "es": "el la lo los las un una unos del de y o que cual como es en para con por se yo mi mis su al este esta hay",
}
_ENGLISH = frozenset(_LITTLE["en"].split())
OTHERS = frozenset(word for language, words in _LITTLE.items() if language != "en" for word in words.split()) - _ENGLISH
"""Little words that tell nothing of what a request in another language asks for."""

SIGNS = r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]"
SIGN = lazy_pattern(SIGNS)
"""A letter of Chinese or Japanese, which write no blanks between words."""
_SIGNS = (
    "的 了 吗 呢 吧 将 并 再 第 分解 是 在 把 给 我 你 您 请问 请 和 与 到 从 有 没有 什么 怎么样 怎样 怎么 多少 哪里 "
    "哪些 如何 帮 一下 里 中 为 用 想知道 想要 想 可以 目前 当前 现在 状况 情况 顺便 使用 今天 明天 后天 昨天 一个 "
    "名为 叫做 基于 还有 需要 所有 最多 最近 关于 以及 "
    "の を に は で が と へ も から まで です ます ください して 何 いくら"
)
"""Little words of these two."""


@lru_cache(maxsize=1)
def _table() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The English words by what a word begins with, and by what Chinese writes."""
    by_stem: dict[str, list[str]] = {}
    by_sign: dict[str, list[str]] = {}
    for line in TABLE.strip().splitlines():
        english, *others, chinese = (column.split() for column in line.split("|"))
        for word in (word for column in others for word in column):
            by_stem.setdefault(word, []).extend(english)
        for word in chinese:
            by_sign.setdefault(word, []).extend(english)
    return by_stem, by_sign


@lru_cache(maxsize=2)
def is_english(text: str) -> bool:
    """Whether more of a request's little words are English than not."""
    words = re.findall(r"[^\W\d_]+", without_accents(text).lower())
    english = sum(word in _ENGLISH for word in words)
    return 0 < english > sum(word in OTHERS for word in words)


def in_english(word: str) -> list[str]:
    """What a word of another language means, by the longest that the table has of its beginning."""
    by_stem, by_sign = _table()
    if SIGN.search(word):
        return [english for sign in re.findall(_longest_first(by_sign), word) for english in by_sign[sign]]
    plain = without_accents(word).lower()
    beginnings = (plain[:length] for length in range(len(plain), max(len(plain) - LONGEST_ENDING, SHORTEST) - 1, -1))
    return next((by_stem[each] for each in (plain, *beginnings) if each in by_stem), [])


def without_accents(text: str) -> str:
    if text.isascii():
        return text
    return "".join(each for each in unicodedata.normalize("NFKD", text) if not unicodedata.combining(each))


_QUOTED = "'[^'\\n]+'|\"[^\"\\n]+\"|“[^”\\n]+”|‘[^’\\n]+’|「[^」\\n]+」"


def apart(text: str) -> str:
    """With a blank between the known words of a Chinese or Japanese text and what stands at them in letters or figures:
    "把 504 分解" of "把504分解", and around what is quoted. Other names, "报告2024.txt", stay whole."""
    if not SIGN.search(text):
        return text
    known = _known()
    text = re.sub(rf"({known})(?=[A-Za-z0-9])", r"\1 ", text)
    text = re.sub(rf"(?<={SIGNS})({_QUOTED})", r" \1", text)
    text = re.sub(rf"({_QUOTED})(?={SIGNS})", r"\1 ", text)
    return re.sub(rf"(?<=[A-Za-z0-9/])({known})", r" \1", text)


@lru_cache(maxsize=1)
def _known() -> str:
    return _longest_first({*_table()[1], *_SIGNS.split()})


def _longest_first(signs: Iterable[str]) -> str:
    """So that 天气, weather, is not read as 天, a day."""
    return "|".join(sorted(signs, key=len, reverse=True))


def between_known(text: str) -> list[str]:
    """What is left of a Chinese or Japanese text without the words of the table and the little ones: "北京" of
    "北京的天气怎么样"."""
    pieces = re.split(rf"(?:{_known()}|[\W\d_])+", text)
    return [piece for piece in pieces if SIGN.search(piece)]
